"""A file that is read as a whole: once, again at an interval, or again and again."""

from __future__ import annotations

import csv
import gzip
import io
import json
import logging
import zlib
from collections import deque
from collections.abc import Iterator
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from edge.intake.sources.files.position import FilePlace
from edge.intake.sources.files.records import CsvRecords, FileRecord, line_records, lines_of
from edge.intake.sources.files.settings import FileSourceSettings
from edge.intake.sources.files.source import BATCH_ROWS, FAILURE_PAUSE_MS, LOOK_MS, FileSource, Mark, Read
from edge.intake.sources.registry import SourceEnvironment
from rules.problems import in_words
from sql.catalog.streams import Stream

log = logging.getLogger("penstock.sources")

WHOLE_BYTES_MAX = 64 * 1024 * 1024
"""Largest JSON file: it is one value, read as a whole. Lines have no such bound."""


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


class WholeFile(FileSource):
    """Reads the file from its beginning; the rows that are safe are left out."""

    def __init__(
        self, stream: Stream, file: Path, settings: FileSourceSettings, environment: SourceEnvironment
    ) -> None:
        super().__init__(stream, file, settings, environment)
        self._stream = stream
        key = stream.options.get("KEY") if stream.kind != "stream" else None
        self._known = KnownRows(str(key)) if key is not None and settings.interval else None
        """Of a lookup table that is read again: the rows that it has."""

    def _run(self) -> None:
        settings = self._settings
        again = settings.loop or settings.interval
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
            if is_read:
                self._go_to(FilePlace())

    def _pause_ms(self, is_read: bool) -> int:
        """The time until the file is read again; `is_read`: it was read to its end."""
        if not is_read:
            return self._settings.interval or FAILURE_PAUSE_MS
        if not self._delivered[0]:  # an empty file in a loop
            return self._settings.interval or LOOK_MS
        return self._settings.interval

    def _place_of(self, mark: Mark) -> FilePlace:
        return FilePlace(mark[0])

    # --- reading --------------------------------------------------------------------------------------------

    def _read(self) -> bool:
        """Deliver the rows after those delivered already; FALSE when the source shall end."""
        self._position.sync()
        batch: list[Read] = []
        begin, number = self._delivered[0], 0
        for record in self._records():
            if record.payload is None:
                continue
            number += 1
            if number <= begin or not (self._known is None or self._known.take(record.payload)):
                continue
            batch.append(((number, 0), record.payload, record.reason))
            if self._settings.send_interval or len(batch) >= BATCH_ROWS:
                if not self._hand_on(batch):
                    return False
                batch = []
        if number < begin:
            return self._read_anew(number)
        return self._hand_on(batch) if batch else True

    def _read_anew(self, rows: int) -> bool:
        """Read a file from its beginning, because it has fewer rows than were read: it was cut off, or it is
        another one."""
        note = f"it had {self._delivered[0]} rows and has {rows}: it is read from its beginning"
        log.warning(
            "source.file_replaced", extra={"source": self.name, "file": self._file.name, "note": note}
        )
        self._go_to(FilePlace())
        return self._read()

    def _records(self) -> Iterator[FileRecord]:
        kind = self._settings.file_type
        if kind == "lines":
            return line_records(self._lines(), True)
        if kind == "csv":
            return self._csv_records()
        rows = self._parquet_rows() if kind == "parquet" else self._json_rows()
        return (FileRecord(0, row) for row in rows)

    def _csv_records(self) -> Iterator[FileRecord]:
        csv_of, lines = CsvRecords(self._settings, self._stream), self._lines()
        if self._settings.has_header:
            csv_of.header(lines)
        return csv_of(lines, True)

    def _opened(self) -> Any:
        self._check_place()
        if self._settings.decompression == "gzip":
            return gzip.open(self._file, "rb")
        if self._settings.decompression == "zstd":
            import zstandard

            return io.BufferedReader(zstandard.open(self._file, "rb"))  # which has lines
        return self._file.open("rb")

    def _lines(self) -> Iterator[bytes]:
        """The lines with their ends, without those that are to be left out."""
        waiting: deque[bytes] = deque()
        with self._opened() as file:
            for line in islice(lines_of(file), self._settings.ignore_start_lines, None):
                waiting.append(line)
                if len(waiting) > self._settings.ignore_end_lines:
                    yield waiting.popleft()

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
