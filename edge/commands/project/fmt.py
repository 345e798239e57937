"""`penstock fmt FILES|DIRS`: every query with a clause a line. Only white space inside queries changes."""

from __future__ import annotations

import argparse
from pathlib import Path

from edge.base.errors import UsageError

YAML = (".yaml", ".yml")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", nargs="+", type=Path, metavar="FILE|DIR", help="rule files, or directories of them"
    )
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a file would change")


def run(arguments: argparse.Namespace) -> int:
    from rules.source.directory import rule_files
    from rules.source.layout import formatted

    changed = 0
    for path in arguments.paths:
        if not path.exists():
            raise UsageError(f"'{path}' does not exist")
        for file in rule_files(path) if path.is_dir() else [path]:
            if file.suffix not in YAML or not file.is_file():
                continue
            before = file.read_text("utf-8")
            after = formatted(before, str(file))
            if after == before:
                continue
            changed += 1
            print(f"{file} would change" if arguments.check else f"{file} written")
            if not arguments.check:
                beside = file.with_name(f".{file.name}.new")
                beside.write_text(after, "utf-8")
                beside.replace(file)
    return 1 if arguments.check and changed else 0
