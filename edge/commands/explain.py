"""`penstock explain RULE_FILE`: how a rule is executed, as a tree, or as the code that was generated for it."""

from __future__ import annotations

import argparse

from edge import rule_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    rule_arguments.add_rule(parser)
    parser.add_argument("--code", action="store_true", help="show the generated code, or why there is none")


def run(arguments: argparse.Namespace) -> int:
    compiled, rule = rule_arguments.chosen_rule(arguments)
    if arguments.code:
        from sql.codegen.fast import explain_code

        print(explain_code(rule.id, rule.plan, compiled.catalog).rstrip())
        return 0
    from sql.explain import explain

    print(f"rule {rule.id}  ({rule.path})")
    print(explain(rule.plan, compiled.catalog).rstrip())
    return 0
