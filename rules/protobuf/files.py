"""Schema files beside the rules: `plant.proto`, or `plant.desc`, which `protoc
--include_imports` makes of it.

SCHEMAID and `schemaId` name a message like eKuiper: the file without its ending, a dot, and the message, with
or without its package: `plant.Reading`, `plant.acme.plant.Reading`. The files are read when the gateway
starts.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rules.problems import FileProblem, in_order
from rules.source.directory import entries
from sql.errors import did_you_mean

_files: dict[str, dict[str, Any]] = {}
"""The message classes of each schema file, by the file's name without its ending; by full name."""


def schema_files(directory: Path) -> list[Path]:
    """The schema files of a directory, by name; none if it cannot be read."""
    return [
        path
        for path in entries(directory)
        if path.suffix in (".proto", ".desc") and path.is_file() and path.name[0] != "."
    ]


def load_schemas(directories: Iterable[Path]) -> list[FileProblem]:
    """Load the messages of the directories, and forget all others; the problems of their files."""
    _files.clear()
    files = dict.fromkeys(path for directory in directories for path in schema_files(directory))
    if not files:
        return []  # most gateways have none, and need no compiler
    from rules.protobuf.descriptors import NotCompiled, messages_of

    problems: list[FileProblem] = []
    for path in files:
        try:
            _files[path.stem] = messages_of(path)
        except NotCompiled as error:
            problems += error.problems
    return in_order(problems)


def message_type(schema_id: str) -> Any:
    """The class of a message. Raises ValueError with a suggestion if there is none."""
    file, _, name = schema_id.partition(".")
    if not name:
        raise ValueError(f"'{schema_id}' names no message; write FILE.Message, such as plant.Reading")
    if file not in _files:
        hint = did_you_mean(file, _files) or f"put {file}.proto beside the rules"
        raise ValueError(f"there is no schema file '{file}.proto': {hint}")
    messages = _files[file]
    found = [known for full, known in messages.items() if name in (full, full.rpartition(".")[2])]
    if len(found) != 1:
        hint = did_you_mean(name, messages) or f"it has {', '.join(sorted(messages))}"
        raise ValueError(
            f"'{name}' is {'several messages' if found else 'no message'} of '{file}.proto': {hint}"
        )
    return found[0]
