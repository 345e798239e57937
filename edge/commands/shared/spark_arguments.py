"""Shared parts of the commands that run rules in Spark."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from edge.base.errors import UsageError
from edge.commands.shared import rule_arguments

if TYPE_CHECKING:
    from rules.compiled import CompiledRule


def add_master(parser: argparse.ArgumentParser) -> None:
    """Add the option that says where Spark runs."""
    parser.add_argument(
        "--master", metavar="URL", help="Spark master (default: Spark's own setting, else local)"
    )


def add_rules(parser: argparse.ArgumentParser) -> None:
    """Add RULES as the next positional argument, which of them `chosen_rules` takes, and where they run."""
    parser.add_argument("rules", type=Path, metavar="RULES", help="a rule file, or a directory of them")
    parser.add_argument("--rule", metavar="ID", help="only this rule")
    add_master(parser)
    rule_arguments.add_zone(parser)


def chosen_rules(arguments: argparse.Namespace, *, of_fleet: bool = False) -> dict[str, CompiledRule]:
    """The rules of `arguments.rules`, those of gateways or those over the fleet, or the one that `--rule`
    names. Raises UsageError."""
    from rules.problems import render_all
    from sql.errors import did_you_mean

    compiled, problems = rule_arguments.compile_files([arguments.rules], arguments.zone)
    if errors := [problem for problem in problems if problem.is_error]:
        raise UsageError(f"the rules have problems\n{render_all(errors)}")
    rules = {name: rule for name, rule in compiled.rules.items() if rule.rule.is_of_fleet is of_fleet}
    if arguments.rule is None:
        if of_fleet and not rules:
            raise UsageError("no rule has 'scope: fleet'; penstock cloud backfill runs the others")
        return rules
    if arguments.rule in compiled.rules.keys() - rules.keys():
        scope, verb = ("gateway", "backfill") if of_fleet else ("fleet", "stream")
        raise UsageError(f"rule '{arguments.rule}' has scope {scope}: penstock cloud {verb} runs it")
    if arguments.rule not in rules:
        hint = did_you_mean(arguments.rule, rules) or f"there are {', '.join(rules) or 'none'}"
        raise UsageError(f"there is no rule '{arguments.rule}'; {hint}")
    return {arguments.rule: rules[arguments.rule]}
