"""The `file` source: rows of JSON, CSV, Parquet and line files, read once, again at an
interval, or as they grow.

Files lie below the gateway's input folder. How many rows are safe is kept beside the gateway's state when
they are acknowledged, so a restart goes on behind them; rows that were read but not yet safe are read again.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import logging
import threading
import zlib
from collections.abc import Iterable, Iterator
from hashlib import blake2b, sha256
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any, Literal, Self

import msgspec
from pydantic import Field, model_validator

from edge.base.message import Message
from edge.intake.codecs.base import BadPayload
from edge.intake.codecs.delimited import ONE_CHARACTER, delimiter_of, is_delimiter, typed_value
from edge.intake.file_position import FilePosition
from edge.intake.sources.registry import BadSource, SourceEnvironment, SourceKind, register_source, topic_of
from edge.intake.sources.worker import WorkerSource
from rules.base import Model
from rules.durations import DurationMs
from rules.problems import in_words
from sql.catalog.streams import Stream

log = logging.getLogger("penstock.sources")

BATCH_ROWS = 1_000
"""Rows handed on at once, where none has to wait for the one before."""

LOOK_MS = 500
"""The interval at which a followed file is read again."""
FAILURE_PAUSE_MS = 5_000
"""The time after which a file that cannot be read is read again, where no interval is set."""

NAME_BYTES_MAX = 100
"""Longest name of a stream that is spelt out in the name of its position's file."""

WHOLE_BYTES_MAX = 64 * 1024 * 1024
"""Largest JSON file: it is one value, read as a whole. Lines have no such bound."""


class FileSourceSettings(Model):
    """Read the rows of a file below `input` in the gateway's data folder; DATASOURCE is its name."""

    path: str | None = Field(None, description="folder of the file, below the input folder")
    file_type: Literal["json", "lines", "csv", "parquet"] = Field(
        "json",
        description="json: one value or array; lines: a message per line, decoded by FORMAT; csv; parquet",
    )
    interval: DurationMs = Field(0, ge=0, description="time after which the file is read again; 0: once")
    loop: bool = Field(False, description="begin again at the end")
    follow: bool = Field(
        False,
        description="stay at the end and read what is appended (lines and csv); a shorter file is read anew",
    )
    send_interval: DurationMs = Field(0, ge=0, description="time between two rows")
    has_header: bool = Field(False, description="of csv: the first line names the columns")
    columns: list[str] | None = Field(None, min_length=1, description="of csv: the names of the columns")
    ignore_start_lines: int = Field(0, ge=0, description="lines left out at the beginning")
    ignore_end_lines: int = Field(0, ge=0, description="lines left out at the end")
    decompression: Literal["gzip", "zstd"] | None = Field(None, description="how the file is compressed")

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        of_lines = self.file_type in ("lines", "csv")
        if self.follow and (
            not of_lines or self.loop or self.interval or self.decompression or self.ignore_end_lines
        ):
            raise ValueError(
                "'follow' reads growing files of lines or csv: no loop, interval, decompression or end"
            )
        if (self.ignore_start_lines or self.ignore_end_lines) and not of_lines:
            raise ValueError("lines are left out of files of lines or csv only")
        if (self.has_header or self.columns) and self.file_type != "csv":
            raise ValueError("'hasHeader' and 'columns' are of csv")
        if self.path is not None:
            _below(self.path)
        for needed, module, extra in (
            (self.decompression == "zstd", "zstandard", "zstd"),
            (self.file_type == "parquet", "pyarrow", "parquet"),
        ):
            if needed and find_spec(module) is None:
                raise ValueError(f"'{extra}' needs a package: install penstock[{extra}]")
        return self


class KnownRows:
    """The newest row of each key of a table. A row that is here already changes nothing,
    so it needs no message: a file that is read again puts into the journal what has changed in it.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self._rows: dict[str, bytes] = {}
        """A digest of the row by its key."""

    def take(self, payload: bytes) -> bool:
        """True if a row is another one than the row of its key before,
        or is not read as an object with a key."""
        try:
            row = msgspec.json.decode(payload)
        except msgspec.MsgspecError:
            return True
        if not isinstance(row, dict) or self._key not in row:
            return True
        key, digest = json.dumps(row[self._key]), blake2b(payload, digest_size=16).digest()
        is_new = self._rows.get(key) != digest
        self._rows[key] = digest
        return is_new


class FileSource(WorkerSource):
    """Reads one file, row by row. A token is the number of a row since the beginning of the run."""

    def __init__(
        self, stream: Stream, file: Path, settings: FileSourceSettings, environment: SourceEnvironment
    ) -> None:
        super().__init__(stream.name, environment.clock)
        self._file = file
        self._root = environment.input_dir.resolve()
        self._settings = settings
        self._delimiter = delimiter_of(stream)
        self._types = {name: kind.value for name, kind in (stream.columns or {}).items()}
        key = stream.options.get("KEY") if stream.kind != "stream" else None
        self._known = KnownRows(str(key)) if key is not None and settings.interval else None
        """Of a lookup table that is read again: the rows that it has."""
        self._position = FilePosition(_position_file(stream.name, environment), file, self._failed)
        self._rows = self._safe = self._position.read()
        """Rows delivered of this reading of the file, and how many of them are safe."""
        self._tokens: dict[int, int] = {}
        """The row of each message that is not safe yet."""
        self._last_token = 0
        self._counting = threading.Lock()
        self._unread = environment.unread
        if stream.kind != "stream":
            self._unread.add(self.name)

    def run(self) -> None:
        try:
            self._run()
        finally:
            self._has_read()
        self._keep_position()

    def _run(self) -> None:
        settings = self._settings
        again = settings.loop or settings.interval or settings.follow
        errors = _errors(settings)
        while self._goes_on():
            is_read = False
            try:
                if not self._read():
                    return
                is_read = True
            except errors as error:
                self._failed(f"{self._file.name}: {in_words(error)}")
            self._has_read()
            if (is_read and not again) or not self._goes_on(self._pause_ms(is_read)):
                return
            if is_read and not settings.follow:
                self._begin_again()

    def _pause_ms(self, is_read: bool) -> int:
        """The time until the file is read again; `is_read`: it was read to its end."""
        if not is_read:
            return self._settings.interval or FAILURE_PAUSE_MS
        if self._settings.follow or not self._rows:  # an empty file in a loop
            return self._settings.interval or LOOK_MS
        return self._settings.interval

    def _has_read(self) -> None:
        """Note that the first reading of a table is over, so that streams of files may begin."""
        if self.name in self._unread:
            self._unread.discard(self.name)
            assert self._on_batch is not None
            self._on_batch([])  # wakes the loop

    def acknowledge(self, tokens: Iterable[int]) -> None:
        """Remember how many rows are safe: those before the first that is not."""
        with self._counting:
            for token in tokens:
                self._tokens.pop(token, None)
            safe = min(self._tokens.values(), default=self._rows)
            if safe > self._safe:
                self._safe = safe
                self._position.store(safe)

    @property
    def stats(self) -> dict[str, int]:
        return {**super().stats, "rows": self._rows, "safe": self._safe}

    def _keep_position(self) -> None:
        """Wait until all rows are safe and their number is on the disk, or the source shall end."""
        while (self._tokens or not self._position.is_stored) and self._goes_on(LOOK_MS):
            self._position.sync()
        self._position.sync()

    def _begin_again(self) -> None:
        with self._counting:
            self._rows = self._safe = 0
            self._tokens = {}
            self._position.store(0)

    # --- reading --------------------------------------------------------------------------------------------

    def _read(self) -> bool:
        """Deliver the rows after those delivered already; FALSE when the source shall end."""
        self._position.sync()
        batch: list[tuple[int, Message]] = []
        begin, number = self._rows, -1
        for number, payload in enumerate(self._payloads()):
            if number < begin or not (self._known is None or self._known.take(payload)):
                continue
            batch.append((number, self._message(payload)))
            if self._settings.send_interval or len(batch) >= BATCH_ROWS:
                if not self._hand_on(batch):
                    return False
                batch = []
        if number + 1 < begin:
            return self._read_anew(number + 1)
        return self._hand_on(batch) if batch else True

    def _read_anew(self, rows: int) -> bool:
        """Read a file from its beginning, because it has fewer rows than were read: it was cut off, or it is
        another one, such as a rotated log."""
        note = f"it had {self._rows} rows and has {rows}: it is read from its beginning"
        log.warning(
            "source.file_replaced", extra={"source": self.name, "file": self._file.name, "note": note}
        )
        self._begin_again()
        return self._read()

    def _message(self, payload: bytes) -> Message:
        self._last_token += 1
        return topic_of(self.name), payload, self._last_token, 0

    def _hand_on(self, batch: list[tuple[int, Message]]) -> bool:
        """Deliver rows, each with its number in the file; FALSE when the source shall end."""
        wait_ms = self._settings.send_interval if self._rows else 0
        if not self._goes_on(wait_ms):
            return False
        self._position.sync()
        with self._counting:
            for number, (_, _, token, _) in batch:
                assert token is not None
                self._tokens[token] = number
                self._rows = number + 1
        self._deliver([message for _, message in batch])
        return True

    def _payloads(self) -> Iterator[bytes]:
        kind = self._settings.file_type
        if kind == "lines":
            return (line.encode() for line in self._lines() if line.strip())
        if kind == "csv":
            return self._csv_rows()
        return self._parquet_rows() if kind == "parquet" else self._json_rows()

    def _opened(self) -> Any:
        if not self._file.resolve().is_relative_to(self._root):
            raise ValueError("the file lies outside of the input folder")
        if self._settings.decompression == "gzip":
            return gzip.open(self._file, "rb")
        if self._settings.decompression == "zstd":
            import zstandard

            return zstandard.open(self._file, "rb")
        return self._file.open("rb")

    def _lines(self) -> Iterator[str]:
        """The lines without their ends. What is followed may grow: a last line without an
        end is not whole yet."""
        settings, waiting = self._settings, []
        with io.TextIOWrapper(self._opened(), encoding="utf-8", newline="\n") as file:
            for number, line in enumerate(file):
                if number < settings.ignore_start_lines or (settings.follow and not line.endswith("\n")):
                    continue
                waiting.append(line.rstrip("\r\n"))
                if len(waiting) > settings.ignore_end_lines:
                    yield waiting.pop(0)

    def _csv_rows(self) -> Iterator[bytes]:
        names: list[str] | None = self._settings.columns or (list(self._types) or None)
        header = self._settings.has_header
        for values in csv.reader(
            (f"{line}\n" for line in self._lines()), delimiter=self._delimiter, strict=True
        ):
            if header:
                names, header = self._settings.columns or values, False
                continue
            if not values:
                continue
            names = names or [f"col{number}" for number in range(len(values))]
            yield msgspec.json.encode(
                {name: self._typed(name, text) for name, text in zip(names, values, strict=False)}
            )

    def _typed(self, name: str, text: str) -> Any:
        """A value as its declared type; what does not fit stays text, for the stream to judge."""
        try:
            return typed_value(name, text, self._types)
        except BadPayload:
            return text

    def _json_rows(self) -> Iterator[bytes]:
        with self._opened() as file:
            text = file.read(WHOLE_BYTES_MAX + 1)
        if len(text) > WHOLE_BYTES_MAX:
            raise ValueError(
                f"a JSON file has at most {WHOLE_BYTES_MAX} bytes; write one object per line (lines)"
            )
        found = msgspec.json.decode(text)
        return (msgspec.json.encode(row) for row in (found if isinstance(found, list) else [found]))

    def _parquet_rows(self) -> Iterator[bytes]:
        from pyarrow.parquet import ParquetFile

        with self._opened() as opened, ParquetFile(opened) as file:
            for batch in file.iter_batches(BATCH_ROWS):
                for row in batch.to_pylist():
                    yield msgspec.json.encode(row, enc_hook=str)


def _errors(settings: FileSourceSettings) -> tuple[type[Exception], ...]:
    """The errors of a file that is not there or damaged: it is read again later."""
    found = (OSError, ValueError, EOFError, zlib.error, msgspec.MsgspecError, csv.Error)
    if settings.decompression != "zstd":
        return found
    import zstandard

    return *found, zstandard.ZstdError


def _below(path: str) -> None:
    """Refuse a path that does not lie below the input folder."""
    pure = PurePosixPath(path)
    if not pure.parts or pure.is_absolute() or ".." in pure.parts or "\0" in path:
        raise ValueError(f"'{path}' is no file below the input folder: give its name, such as rows.jsonl")


def check_file(stream: Stream, settings: FileSourceSettings) -> None:
    """Refuse with `BadSource` what cannot be read as rows of the stream, and settings that would put the rows
    of a table into it again and again."""
    try:
        _below(stream.datasource)
    except ValueError as error:
        raise BadSource("DATASOURCE", str(error)) from None
    if settings.file_type == "csv" and not is_delimiter(delimiter_of(stream)):
        raise BadSource("DELIMITER", ONE_CHARACTER)
    if stream.kind == "scan" and (settings.interval or settings.loop):
        raise BadSource(
            "EXTRA", "the file of a table is read when a rule begins: remove 'interval' and 'loop'"
        )


def forget_position(stream: str, environment: SourceEnvironment) -> None:
    """Let the next source of this name read its file from the beginning."""
    _position_file(stream, environment).unlink(missing_ok=True)


def _position_file(stream: str, environment: SourceEnvironment) -> Path:
    name = stream.encode()
    return (
        environment.state_dir
        / f"{name.hex() if len(name) <= NAME_BYTES_MAX else sha256(name).hexdigest()}.json"
    )


def _make(stream: Stream, settings: FileSourceSettings, environment: SourceEnvironment) -> FileSource:
    check_file(stream, settings)
    file = environment.input_dir / (settings.path or "") / stream.datasource
    return FileSource(stream, file, settings, environment)


def _row_format(settings: FileSourceSettings) -> str | None:
    return None if settings.file_type == "lines" else "json"


register_source(SourceKind("file", FileSourceSettings, _make, _row_format))
