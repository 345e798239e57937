"""`penstock explain RULE_FILE`: how a rule is executed, as a tree."""

from __future__ import annotations

import argparse

from edge import rule_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    rule_arguments.add_rule(parser)


def run(arguments: argparse.Namespace) -> int:
    _, rule = rule_arguments.chosen_rule(arguments)
    print(f"rule {rule.id}  ({rule.path})")
    print(rule.plan.explain().rstrip())
    return 0
