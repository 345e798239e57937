"""Files beside the rules: functions in Python, and schemas. They are read once, before the rules."""

from __future__ import annotations

from pathlib import Path

from rules.problems import FileProblem
from rules.protobuf import load_schemas
from rules.source.directory import function_files


def load_beside(directory: Path) -> list[FileProblem]:
    """Load them; their problems."""
    return [*_load_functions(directory), *load_schemas([directory])]


def _load_functions(directory: Path) -> list[FileProblem]:
    if not function_files(directory):
        return []  # most gateways have none, and checking their names needs the binder
    from rules.functions.files import load_functions

    return load_functions([directory])
