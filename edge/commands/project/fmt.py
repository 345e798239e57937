"""`penstock fmt FILES|DIRS`: every query with a clause a line. Only white space inside queries changes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from edge.base.errors import UsageError
from edge.commands.shared import rule_arguments
from sinks.durable import replace_file

YAML = (".yaml", ".yml")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", nargs="+", type=Path, metavar="FILE|DIR", help="rule files, or directories of them"
    )
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a file would change")


def run(arguments: argparse.Namespace) -> int:
    outcomes = [_laid_out(file, write=not arguments.check) for file in _files(arguments.paths)]
    return 1 if "bad" in outcomes or (arguments.check and "changed" in outcomes) else 0


def _files(paths: list[Path]) -> Iterator[Path]:
    """The YAML files meant. Raises UsageError for a named file that is not YAML."""
    for file in rule_arguments.files_in(paths):
        if file.suffix in YAML:
            yield file
        elif file in paths:
            raise UsageError(f"'{file}' is no YAML; name *.yaml and *.yml files only, or their directory")


def _laid_out(file: Path, *, write: bool) -> Literal["same", "changed", "bad"]:
    """Bring a file into the layout; one that is no YAML stays, and its problems are printed."""
    from rules.problems import render_all
    from rules.source.layout import formatted
    from rules.source.yaml_source import read_file

    document, problems = read_file(file, str(file))
    if errors := [problem for problem in problems if problem.is_error]:
        print(render_all(errors), file=sys.stderr)
        return "bad"
    before = "" if document is None else document.text.text.replace("\r\n", "\n")
    after = formatted(before, str(file))
    if after == before:
        return "same"
    if write:
        replace_file(file.resolve(), after)
    print(f"{file} written" if write else f"{file} would change")
    return "changed"
