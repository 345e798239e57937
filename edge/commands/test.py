"""`penstock test FILES|DIRS`: the tests written in rule files, on a virtual clock."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from edge.base.errors import UsageError
from edge.commands.shared import rule_arguments, watching


def add_arguments(parser: argparse.ArgumentParser) -> None:
    rule_arguments.add_paths(parser)
    parser.add_argument("--verbose", action="store_true", help="also name the tests that pass")
    parser.add_argument(
        "--junit", type=Path, metavar="FILE.xml", help="write the results as JUnit XML as well"
    )
    watching.add_watch(parser)


def run(arguments: argparse.Namespace) -> int:
    return watching.run_watched(arguments, _test)


def _test(arguments: argparse.Namespace) -> int:
    from edge.commands.shared.junit import write_junit
    from edge.commands.shared.payload_notes import payload_notes
    from rules.inline import run_tests
    from rules.problems import render_all

    compiled, problems = rule_arguments.compile_paths(arguments)
    errors = [problem for problem in problems if problem.is_error]
    if errors:
        print(render_all(errors))
    results = run_tests(compiled)
    if not results and not errors:
        raise UsageError("the files hold no tests; add 'tests:' to a rule")
    for result in results:
        if not result.passed:
            print(f"FAILED {result.path}:{result.line} {result.rule}: {result.name}")
            print(render_all(result.failures))
        elif arguments.verbose:
            print(f"passed {result.path}:{result.line} {result.rule}: {result.name}")
    for note in payload_notes(compiled):
        print(f"note: {note}")
    if arguments.junit is not None:
        write_junit(arguments.junit, results, errors)
    failed = sum(not result.passed for result in results)
    sys.stdout.flush()
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed or errors else 0
