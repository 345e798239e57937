"""`penstock check FILES|DIRS`: every problem of rule files, with file, line, column, caret and hint."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from edge.base.errors import UsageError
from edge.base.quantities import counted
from edge.commands.shared import recorded, rule_arguments, watching

if TYPE_CHECKING:
    from rules.compiled import Compiled
    from rules.problems import FileProblem
    from sql import Catalog


def add_arguments(parser: argparse.ArgumentParser) -> None:
    rule_arguments.add_paths(parser)
    parser.add_argument(
        "--recorded",
        action="append",
        default=[],
        metavar="STREAM=DATA",
        help="recorded events of a stream: columns that none of them has are told",
    )
    parser.add_argument("--quiet", action="store_true", help="print problems only, no summary")
    parser.add_argument(
        "--format",
        choices=("text", "json", "github"),
        default="text",
        help="json: one array for programs; github: annotations of GitHub Actions",
    )
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help=(
            "configuration of the gateway that is to run the rules: names of connections are looked up in it"
        ),
    )
    watching.add_watch(parser)


def run(arguments: argparse.Namespace) -> int:
    return watching.run_watched(arguments, _check)


def _check(arguments: argparse.Namespace) -> int:
    compiled, problems = rule_arguments.compile_paths(arguments)
    from edge.commands.shared.problem_formats import FORMATS
    from rules.lint.check import lint
    from rules.problems import in_order

    samples = recorded.samples(arguments.recorded)
    _check_streams(samples, compiled.catalog)
    problems = in_order(
        [*problems, *lint(compiled, samples), *_beyond_configuration(compiled, arguments.config)]
    )

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
        print(", ".join(counted(count, name) for name, count in counts.items()))
    return 1 if errors else 0


def _check_streams(samples: Iterable[str], catalog: Catalog) -> None:
    """Raises UsageError for recorded events of a stream that no file declares."""
    from sql.errors import did_you_mean

    for name in samples:
        if name not in catalog.streams:
            hint = did_you_mean(name, catalog.streams) or f"there are {', '.join(catalog.streams) or 'none'}"
            raise UsageError(f"--recorded: no file declares the stream '{name}'; {hint}")


def _beyond_configuration(compiled: Compiled, path: Path | None) -> Iterator[FileProblem]:
    """The names in the rules that this configuration does not have, or does not allow."""
    if path is None:
        return
    from edge.config import load
    from edge.deploy.checks.configured import configured_problems
    from edge.deploy.checks.outgoing import outgoing_problems
    from edge.deploy.checks.usable import check_usable
    from edge.intake.sources.registry import configured_of

    config = load(path)
    check_usable(config)
    yield from configured_problems(compiled, configured_of(config))
    yield from outgoing_problems(compiled, config.outgoing.allow)
