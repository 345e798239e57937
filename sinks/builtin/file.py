"""The `file` sink: results as lines of files below the data folder, rotated by size, count and age."""

from __future__ import annotations

import errno
import os
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from rules.durations import DurationMs
from rules.problems import in_words
from rules.secrets import reveal
from rules.validation import describe
from sinks.base import Clock, Message, Reject, Retry, SinkContext, register_sink
from sinks.below import check_relative, open_append, open_folder
from sinks.durable import append_durably
from sinks.dynamic import Target
from sinks.formats.compression import compressor
from sinks.kuiper_keys import REPLACED, WITHOUT_EFFECT
from sinks.settings import SinkSettings, Text

OPEN_FILES_MAX = 64
"""Files kept open by one sink; the one unused longest is closed when another is needed."""

_HOPELESS = frozenset(
    {errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.EINVAL, errno.EMLINK}
)
"""Errors that the path itself causes, so that trying again cannot help."""


_FILE_TYPES: dict[Any, dict[str, Any]] = {
    "lines": {},
    "csv": {"format": "delimited"},
}
"""eKuiper's kinds of files as settings of this sink. A JSON file is one array there, which cannot be appended
to: use lines."""


class FileSettings(SinkSettings):
    """Append results to files below `output` in the data folder, one line per row.

    A full file is renamed to `NAME-MILLISECONDS.SUFFIX` and a new one is begun. With `compression: gzip` the
    file is a valid gzip file at any time; give it a name ending in `.gz`.
    """

    target: ClassVar[str | None] = "path"
    target_kind: ClassVar[Literal["topic", "url", "path"]] = "path"
    appends: ClassVar[bool] = True
    without_effect: ClassVar[Mapping[str, str]] = {
        **WITHOUT_EFFECT,
        "interval": "results are written when they come",
        "checkInterval": "a file's age is looked at with each result",
        "rollingNamePattern": "full files are called NAME-MILLISECONDS.SUFFIX",
    }

    replaced: ClassVar[Mapping[str, str]] = {
        **REPLACED,
        "rollingHook": "another program may take full files away, which are called NAME-MILLISECONDS.SUFFIX",
        "rollingHookProps": "nothing is called when a file is full",
    }

    path: Text = Field(
        description="relative to that folder, such as 'alarms.jsonl' or '{{.site}}/alarms.jsonl'"
    )
    send_single: bool = Field(True, description="one line per row; false writes an array per result")
    rolling_size: int = Field(
        64 * 1024 * 1024, ge=1, description="bytes; a message that would exceed them begins a new file"
    )
    rolling_count: int = Field(
        0, ge=0, description="messages after which a new file is begun; 0 means no limit"
    )
    rolling_interval: DurationMs = Field(0, ge=0, description="the age at which a new file is begun")
    rolling_keep: int = Field(0, ge=0, description="full files to keep, the oldest are deleted; 0 keeps all")
    fsync: bool = Field(True, description="results count as delivered only when they are on the disk")

    @field_validator("path")
    @classmethod
    def _path_is_below(cls, path: object) -> Any:
        Target(reveal(path), "path")
        check_relative(reveal(path))
        return path

    def faults(self) -> Iterator[str]:
        """Files are appended to."""
        yield from super().faults()
        if self.compression in ("zlib", "flate"):
            yield f"'compression' must be gzip or zstd: a file cannot be appended to in {self.compression}"

    @classmethod
    def _without_what_has_no_effect(cls, data: dict[Any, Any], reasons: list[str]) -> dict[Any, Any]:
        """Replace eKuiper's `fileType` by the format of its lines."""
        kind = data.pop("fileType", None)
        if kind is not None and kind not in _FILE_TYPES:
            reasons.append(f"'fileType' must be {' or '.join(_FILE_TYPES)}, not {describe(kind)}")
            kind = None
        return super()._without_what_has_no_effect({**_FILE_TYPES.get(kind, {}), **data}, reasons)


@dataclass(slots=True)
class _OpenFile:
    folder: int
    name: str
    descriptor: int
    born_ms: int
    messages: int = 0

    def size(self) -> int:
        """Bytes in the file."""
        return os.fstat(self.descriptor).st_size

    def close(self) -> None:
        """Close both descriptors."""
        os.close(self.descriptor)
        os.close(self.folder)


class FileSink:
    """A sink that writes lines; a batch is on the disk whole or not at all, and a torn last line of a crash
    is ended first."""

    def __init__(self, settings: FileSettings, context: SinkContext) -> None:
        self._settings = settings
        self._compress = compressor(settings.compression)
        self._root: Path = context.environment.data_dir
        self._clock: Clock = context.environment.clock
        self._files: OrderedDict[str, _OpenFile] = OrderedDict()

    def open(self) -> None:
        """Do nothing: files are opened by their first line."""

    def close(self) -> None:
        """Close all files."""
        while self._files:
            self._files.popitem()[1].close()

    def send(self, messages: Sequence[Message]) -> None:
        """Append each run of messages for one file with one write and one fsync."""
        done = 0
        while done < len(messages):
            path = messages[done].target
            try:
                file = self._file(path, len(messages[done].payload) + 1)
                end = done + self._room(file, messages[done:])
                self._append(file, messages[done:end])
            except OSError as failure:
                raise self._failure(failure, path, done) from failure
            except ValueError as failure:
                raise Reject(str(failure), done=done) from failure
            done = end

    def _failure(self, failure: OSError, path: str, done: int) -> Reject | Retry:
        reason = f"file {path!r}: {in_words(failure, with_file=False)}"
        if failure.errno in _HOPELESS:
            return Reject(
                reason + (" (symbolic links are not followed)" if failure.errno == errno.ELOOP else ""),
                done=done,
            )
        return Retry(reason, done=done)

    def _room(self, file: _OpenFile, messages: Sequence[Message]) -> int:
        """The number of leading messages that fit `file` before it must be rolled: same path, within size and
        count."""
        settings = self._settings
        size, count = file.size(), 0
        for message in messages:
            size += len(message.payload) + 1
            if message.target != messages[0].target or (count and size > settings.rolling_size):
                break
            if count and settings.rolling_count and file.messages + count >= settings.rolling_count:
                break
            count += 1
        return count

    def _append(self, file: _OpenFile, messages: Sequence[Message]) -> None:
        begins = file.size() == 0
        data = (messages[0].header if begins else b"") + b"".join(
            _line(message.payload) for message in messages
        )
        if self._compress is not None:
            data = self._compress(data)
        append_durably(file.descriptor, data, sync=self._settings.fsync)
        if begins and self._settings.fsync:
            os.fsync(file.folder)  # the new name must survive a power cut as well
        file.messages += len(messages)

    def _file(self, path: str, size: int) -> _OpenFile:
        """The open file of `path`, rolled first if it has no room for `size` bytes."""
        file = self._files.get(path)
        if file is not None and self._is_full(file, size):
            del self._files[path]
            self._roll(file)
            file = None
        if file is None:
            if len(self._files) >= OPEN_FILES_MAX:
                self._files.popitem(last=False)[1].close()
            file = self._files[path] = self._open_file(path)
            if self._is_full(file, size):
                return self._file(path, size)
        self._files.move_to_end(path)
        return file

    def _open_file(self, path: str) -> _OpenFile:
        name = PurePosixPath(path).name
        folder = open_folder(self._root, path)
        try:
            descriptor = open_append(folder, name)
        except OSError:
            os.close(folder)
            raise
        status = os.fstat(descriptor)
        born_ms = status.st_mtime_ns // 1_000_000 if status.st_size else self._clock.now_ms()
        if (
            status.st_size
            and not self._settings.compression
            and os.pread(descriptor, 1, status.st_size - 1) != b"\n"
        ):
            os.write(descriptor, b"\n")
        return _OpenFile(folder, name, descriptor, born_ms)

    def _is_full(self, file: _OpenFile, size: int) -> bool:
        settings = self._settings
        if not file.size():
            return False
        return (
            file.size() + size > settings.rolling_size
            or 0 < settings.rolling_count <= file.messages
            or 0 < settings.rolling_interval <= self._clock.now_ms() - file.born_ms
        )

    def _roll(self, file: _OpenFile) -> None:
        """Rename the full file and delete the oldest ones beyond `rollingKeep`."""
        try:
            stem, dot, suffix = file.name.partition(".")
            rolled = _rolled(file.folder, stem, dot + suffix)
            # Never below an earlier number, even if the clock was set back: names sort by age.
            number = max([self._clock.now_ms(), *(earlier + 1 for earlier in rolled)])
            rolled[number] = f"{stem}-{number}{dot}{suffix}"
            os.rename(file.name, rolled[number], src_dir_fd=file.folder, dst_dir_fd=file.folder)
            if self._settings.rolling_keep:
                for old in sorted(rolled)[: -self._settings.rolling_keep]:
                    os.unlink(rolled[old], dir_fd=file.folder)
        finally:
            file.close()


def _line(payload: bytes) -> bytes:
    return payload if payload.endswith(b"\n") else payload + b"\n"


def _rolled(folder: int, stem: str, ending: str) -> dict[int, str]:
    """The names of rolled files by their numbers."""
    numbers = {}
    for name in os.listdir(folder):
        middle = name.removeprefix(f"{stem}-").removesuffix(ending)
        if name == f"{stem}-{middle}{ending}" and middle.isascii() and middle.isdigit():
            numbers[int(middle)] = name
    return numbers


register_sink("file", FileSettings, FileSink)
