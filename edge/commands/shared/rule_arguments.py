"""Shared parts of the commands that read rule files: arguments, loading, compiling, choosing a rule."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from edge.base.errors import UsageError

if TYPE_CHECKING:
    from rules.compiled import Compiled, CompiledRule
    from rules.problems import FileProblem


def add_paths(parser: argparse.ArgumentParser) -> None:
    """Rule files and directories, and the time zone they are checked with."""
    parser.add_argument(
        "paths", nargs="+", type=Path, metavar="FILE|DIR", help="rule files, or directories of them"
    )
    add_zone(parser)


def add_zone(parser: argparse.ArgumentParser) -> None:
    """The gateway's time zone, for rules that name none."""
    parser.add_argument(
        "--zone", default="UTC", metavar="NAME", help="time zone of rules that name none (default UTC)"
    )


def compile_paths(arguments: argparse.Namespace) -> tuple[Compiled, list[FileProblem]]:
    """The rules of the given paths, and all problems of theirs. Raises UsageError when
    there is nothing to read."""
    return compile_files(arguments.paths, arguments.zone)


def compile_files(paths: list[Path], zone: str) -> tuple[Compiled, list[FileProblem]]:
    """Load and compile. Nothing is opened, so secrets need not be here; one that is missing is a note."""
    from edge.deploy.checks.stream_problems import stream_problems
    from edge.deploy.circles import circle_problems
    from edge.plugins.entry_points import load_plugins
    from edge.plugins.sink_kinds import register_sinks
    from rules.compile import compile_rules
    from rules.functions.files import load_functions
    from rules.loader import load_paths
    from rules.problems import in_order
    from rules.protobuf import load_schemas
    from rules.secrets import Secrets

    files_in(paths)
    _check_zone(zone)
    load_plugins()
    register_sinks()
    folders = dict.fromkeys(path if path.is_dir() else path.parent for path in paths)
    beside = [*load_functions(folders, examples=True), *load_schemas(folders)]
    compiled = compile_rules(load_paths(paths, secrets=Secrets(may_be_absent=True)), zone=zone)
    return compiled, in_order(
        [*beside, *compiled.problems, *stream_problems(compiled), *circle_problems(compiled)]
    )


def files_in(paths: list[Path]) -> list[Path]:
    """The given files, and the rule files of the given directories. Raises UsageError for a path without any,
    OSError for a directory that cannot be read."""
    from rules.source.directory import rule_files

    found = []
    for path in paths:
        if not path.exists():
            what = "is a link to a file that is not there" if path.is_symlink() else "does not exist"
            raise UsageError(f"'{path}' {what}")
        files = [file for file in rule_files(path) if not file.is_dir()] if path.is_dir() else [path]
        if not files:
            next(path.iterdir(), None)  # raises for a directory that cannot be read
            raise UsageError(f"'{path}' holds no rule files (*.yaml, *.yml, *.json, *.sql)")
        found += files
    return found


def _check_zone(zone: str) -> None:
    from sql.calendar.zones import zone_of

    try:
        zone_of(zone)
    except ValueError as error:
        raise UsageError(f"--zone: {error}") from None


def add_rule(parser: argparse.ArgumentParser) -> None:
    """One rule: its file, and its id where the file has several."""
    parser.add_argument(
        "file", type=Path, metavar="RULE_FILE", help="the rule's file; its neighbours may define its streams"
    )
    parser.add_argument("--rule", metavar="ID", help="which rule of the file; needed if it has several")
    add_zone(parser)


def chosen_rule(arguments: argparse.Namespace) -> tuple[Compiled, CompiledRule]:
    """The rule that `add_rule`'s arguments mean. Problems that do not keep it from running, such as those of
    another rule or of function files, go to standard error; others raise UsageError."""
    from rules.problems import render_all
    from sql.errors import did_you_mean

    compiled, problems = compile_files([arguments.file], arguments.zone)
    written = [rule.id for rule in compiled.loaded.rules]
    wanted = arguments.rule or (written[0] if len(written) == 1 else None)
    if errors := [problem for problem in problems if problem.is_error]:
        found = f"the file has problems\n{render_all(errors)}"
        if wanted not in compiled.rules:
            raise UsageError(found)
        print(found, file=sys.stderr)
    if not written:
        raise UsageError(f"{arguments.file} has no rules")
    if wanted is None:
        raise UsageError(f"choose one with --rule: {arguments.file} has {', '.join(written)}")
    if wanted not in compiled.rules:
        hint = did_you_mean(wanted, compiled.rules) or f"it has {', '.join(compiled.rules) or 'none'}"
        raise UsageError(f"{arguments.file} has no rule '{wanted}'; {hint}")
    return compiled, compiled.rules[wanted]
