"""Schema files beside the rules: `plant.proto`, or `plant.desc`, which `protoc
--include_imports` makes of it.

SCHEMAID and `schemaId` name a message like eKuiper: the file without its ending, a dot, and the message, with
or without its package: `plant.Reading`, `plant.acme.plant.Reading`. The files are read when the gateway
starts.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rules.problems import FileProblem, FileText, in_order
from sql.errors import Span, did_you_mean

COMPILE_S = 30
"""Seconds that protoc may take for a file."""

_PLACE = re.compile(
    r"^(?P<file>[^:\n]+\.proto):(?:(?P<line>\d+):(?P<column>\d+): )?(?P<message>.*)$", re.MULTILINE
)

_files: dict[str, dict[str, Any]] = {}
"""The message classes of each schema file, by the file's name without its ending; by full name."""


def schema_files(directory: Path) -> list[Path]:
    """The schema files of a directory, by name; none if it cannot be read."""
    try:
        entries = sorted(directory.iterdir())
    except OSError:
        return []
    return [
        path
        for path in entries
        if path.suffix in (".proto", ".desc") and path.is_file() and path.name[0] != "."
    ]


def load_schemas(directories: Iterable[Path]) -> list[FileProblem]:
    """Load the messages of the directories, and forget all others; the problems of their files."""
    _files.clear()
    files = dict.fromkeys(path for directory in directories for path in schema_files(directory))
    return in_order(problem for path in files for problem in _load(path))


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


def _load(path: Path) -> Iterator[FileProblem]:
    if find_spec("google") is None or find_spec("google.protobuf") is None:
        yield _problem(path, "schema files need Protocol Buffers: install penstock[protobuf]")
        return
    try:
        compiled = path.read_bytes() if path.suffix == ".desc" else _compiled(path)
        _files[path.stem] = _messages(compiled)
    except _NotCompiled as error:
        yield from error.problems
    except (OSError, subprocess.SubprocessError) as error:
        yield _problem(path, f"the file cannot be compiled: {error}")
    # The library's errors have no common class; a file that fails stops no other.
    except Exception as error:  # noqa: BLE001
        yield _problem(path, f"this is no compiled schema: {error}")


class _NotCompiled(Exception):
    """protoc's error text for a file."""

    def __init__(self, problems: list[FileProblem]) -> None:
        super().__init__()
        self.problems = problems


def _compiled(path: Path) -> bytes:
    """The descriptors of a .proto file and of what it imports, made by protoc."""
    if find_spec("grpc_tools") is None:
        raise _NotCompiled(
            [_problem(path, "compiling it needs grpcio-tools: install penstock[protobuf], or give a .desc")]
        )
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.desc"
        words = [
            sys.executable,
            "-m",
            "grpc_tools.protoc",
            f"-I{path.parent}",
            "--include_imports",
            f"--descriptor_set_out={out}",
            str(path),
        ]
        done = subprocess.run(words, capture_output=True, text=True, timeout=COMPILE_S, check=False)
        if done.returncode != 0:
            raise _NotCompiled(list(_said(path, done.stderr)))
        return out.read_bytes()


def _said(path: Path, text: str) -> Iterator[FileProblem]:
    found = [match for match in _PLACE.finditer(text) if match["line"]]
    for match in found:
        at = path.parent / match["file"]
        written = FileText(str(at), at.read_text("utf-8", "replace"))
        lines = written.text.splitlines(keepends=True)
        start = sum(map(len, lines[: int(match["line"]) - 1])) + int(match["column"]) - 1
        yield written.problem("R405", match["message"].rstrip(), Span(start, start + 1))
    if not found:
        yield _problem(path, f"the file cannot be compiled: {text.strip()[:500]}")


def _problem(path: Path, message: str) -> FileProblem:
    return FileProblem(str(path), 0, 0, "R405", message)


def _messages(compiled: bytes) -> dict[str, Any]:
    """The classes of the messages of the last file of a descriptor set, and of those
    within them, by full name."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    files = descriptor_pb2.FileDescriptorSet.FromString(compiled).file
    pool = descriptor_pool.DescriptorPool()
    for file in files:
        pool.Add(file)
    found: dict[str, Any] = {}
    waiting = list(pool.FindFileByName(files[-1].name).message_types_by_name.values())
    for descriptor in waiting:
        if not descriptor.GetOptions().map_entry:
            found[descriptor.full_name] = message_factory.GetMessageClass(descriptor)
            waiting += descriptor.nested_types
    return found
