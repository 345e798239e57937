"""The messages of a schema file: protoc compiles it, the library makes classes of its descriptors."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rules.problems import FileProblem, FileText
from sql.errors import Span

COMPILE_S = 30
"""Seconds that protoc may take for a file."""

_PLACE = re.compile(
    r"^(?P<file>[^:\n]+\.proto):(?:(?P<line>\d+):(?P<column>\d+): )?(?P<message>.*)$", re.MULTILINE
)


class NotCompiled(Exception):
    """The problems of a file that gives no messages."""

    def __init__(self, problems: list[FileProblem]) -> None:
        super().__init__()
        self.problems = problems


def messages_of(path: Path) -> dict[str, Any]:
    """The classes of a file's messages by full name. Raises `NotCompiled`."""
    if find_spec("google") is None or find_spec("google.protobuf") is None:
        raise NotCompiled([_problem(path, "schema files need Protocol Buffers: install penstock[protobuf]")])
    try:
        return _messages(path.read_bytes() if path.suffix == ".desc" else _compiled(path))
    except NotCompiled:
        raise
    except (OSError, subprocess.SubprocessError) as error:
        raise NotCompiled([_problem(path, f"the file cannot be compiled: {error}")]) from error
    # The library's errors have no common class; a file that fails stops no other.
    except Exception as error:
        raise NotCompiled([_problem(path, f"this is no compiled schema: {error}")]) from error


def _compiled(path: Path) -> bytes:
    """The descriptors of a .proto file and of what it imports, made by protoc."""
    if find_spec("grpc_tools") is None:
        raise NotCompiled(
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
            raise NotCompiled(list(_compile_problems(path, done.stderr)))
        return out.read_bytes()


def _compile_problems(path: Path, text: str) -> Iterator[FileProblem]:
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
