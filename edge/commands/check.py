"""`penstock check FILES|DIRS`: every problem of rule files, with file, line, column, caret and hint."""

from __future__ import annotations

import argparse

from edge.commands.shared import recorded, rule_arguments, watching


def add_arguments(parser: argparse.ArgumentParser) -> None:
    rule_arguments.add_paths(parser)
    parser.add_argument(
        "--sample",
        action="append",
        default=[],
        metavar="STREAM=DATA.jsonl",
        help="recorded events of a stream: columns that none of them has are told",
    )
    parser.add_argument("--quiet", action="store_true", help="print problems only, no summary")
    parser.add_argument(
        "--format",
        choices=("text", "json", "github"),
        default="text",
        help="json: one array for programs; github: annotations of GitHub Actions",
    )
    watching.add_watch(parser)


def run(arguments: argparse.Namespace) -> int:
    return watching.run_watched(arguments, _check)


def _check(arguments: argparse.Namespace) -> int:
    compiled, problems = rule_arguments.compile_paths(arguments)
    from edge.commands.shared.problem_formats import FORMATS
    from rules.lint.check import lint
    from rules.problems import in_order

    samples = dict(recorded.columns_of(text) for text in arguments.sample)
    problems = in_order([*problems, *lint(compiled, samples)])

    if problems or arguments.format == "json":
        print(FORMATS[arguments.format](problems))
    errors = sum(problem.is_error for problem in problems)
    if not arguments.quiet and arguments.format == "text":
        counts = {
            "file": len(compiled.loaded.files),
            "rule": len(compiled.rules),
            "error": errors,
            "warning": len(problems) - errors,
        }
        print(", ".join(f"{count} {name}{'' if count == 1 else 's'}" for name, count in counts.items()))
    return 1 if errors else 0
