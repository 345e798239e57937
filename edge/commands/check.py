"""`penstock check FILES|DIRS`: every problem of rule files, with file, line, column, caret and hint."""

from __future__ import annotations

import argparse

from edge.commands.shared import rule_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    rule_arguments.add_paths(parser)
    parser.add_argument("--quiet", action="store_true", help="print problems only, no summary")


def run(arguments: argparse.Namespace) -> int:
    compiled, problems = rule_arguments.compile_paths(arguments)
    from rules.problems import render_all

    if problems:
        print(render_all(problems))
    errors = sum(problem.is_error for problem in problems)
    if not arguments.quiet:
        counts = {"file": len(compiled.loaded.files), "rule": len(compiled.rules), "error": errors,
                  "warning": len(problems) - errors}  # fmt: skip
        print(", ".join(f"{count} {name}{'' if count == 1 else 's'}" for name, count in counts.items()))
    return 1 if errors else 0
