"""Rows in files of lines: from bytes to the payloads of messages.

A record that cannot be read, such as a line of CSV with a quote too many, is refused, and those behind it are
read: the line is refused, not the file.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, BinaryIO, NamedTuple

import msgspec

from edge.intake.codecs.base import BadPayload
from edge.intake.codecs.delimited import delimiter_of, typed_value
from edge.intake.sources.files.settings import FileSourceSettings
from rules.problems import in_words
from sql.catalog.streams import Stream

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


LINE_BYTES_MAX = 16 * 1024 * 1024
"""A longer line is read in pieces, so that a file without line ends fits into memory."""


def lines_of(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file with their ends; the last one may have none."""
    return iter(partial(file.readline, LINE_BYTES_MAX), b"")


class FileRecord(NamedTuple):
    """A piece of a file.

    size     its bytes
    payload  the message, if it is a row; what cannot be read, if there is a `reason`
    """

    size: int
    payload: bytes | None = None
    reason: str | None = None


Records = Callable[[Iterable[bytes], bool], Iterator[FileRecord]]
"""From lines, with their ends, to records. TRUE: nothing comes behind them, so a record that is cut off is
refused; it waits otherwise."""


def line_records(lines: Iterable[bytes], is_ended: bool) -> Iterator[FileRecord]:
    """Each line that is not blank is a row."""
    for line in lines:
        text = line.rstrip(b"\r\n")
        yield FileRecord(len(line), (text.removeprefix(BYTE_ORDER_MARK) or None) if text.strip() else None)


class CsvRecords:
    """Rows of CSV. The columns have the names that are configured, those of the header, those of the stream,
    or col0, col1, ..."""

    def __init__(self, settings: FileSourceSettings, stream: Stream) -> None:
        self._delimiter = delimiter_of(stream)
        self._types = {name: kind.value for name, kind in (stream.columns or {}).items()}
        self._named = settings.columns
        self._names = settings.columns or list(self._types) or None

    def header(self, lines: Iterable[bytes]) -> int | None:
        """Take the names from the first record; its size, or None where it is not there as a whole."""
        for values, record in self._read(lines, False):
            if record.reason is not None:
                raise ValueError(f"the header is {record.reason}")
            self._names = self._named or values
            return record.size
        return None

    def __call__(self, lines: Iterable[bytes], is_ended: bool) -> Iterator[FileRecord]:
        for values, record in self._read(lines, is_ended):
            yield record._replace(payload=self._row(values)) if values else record

    def _read(self, lines: Iterable[bytes], is_ended: bool) -> Iterator[tuple[list[str], FileRecord]]:
        """The values of each record, none where it is blank or refused."""
        feed = LineFeed(lines)
        reader = csv.reader(feed, delimiter=self._delimiter, strict=True)
        while True:
            try:
                values = next(reader)
            except StopIteration:
                return
            except (csv.Error, UnicodeDecodeError) as error:
                if feed.is_over and not is_ended:
                    return
                line = feed.refused()
                yield [], FileRecord(len(line), line, f"not a line of CSV: {in_words(error)}")
                reader = csv.reader(feed, delimiter=self._delimiter, strict=True)
            else:
                yield values, FileRecord(feed.taken())

    def _row(self, values: list[str]) -> bytes:
        names = self._names = self._names or [f"col{number}" for number in range(len(values))]
        return msgspec.json.encode(
            {name: self._typed(name, text) for name, text in zip(names, values, strict=False)}
        )

    def _typed(self, name: str, text: str) -> Any:
        """A value as its declared type; what does not fit stays text, for the stream to judge."""
        try:
            return typed_value(name, text, self._types)
        except BadPayload:
            return text


class LineFeed:
    """Lines as text, for a reader that takes as many as a record needs."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self.is_over = False
        """True if a line was wanted and there was none."""
        self._lines = iter(lines)
        self._taken: list[bytes] = []
        self._again: deque[bytes] = deque()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._again.popleft() if self._again else next(self._lines, None)
        if line is None:
            self.is_over = True
            raise StopIteration
        self._taken.append(line)
        return line.removeprefix(BYTE_ORDER_MARK).decode()

    def taken(self) -> int:
        """The size of the lines since the last call."""
        size = sum(map(len, self._taken))
        self._taken.clear()
        return size

    def refused(self) -> bytes:
        """The first of the lines since the last call; the others come again."""
        first, *rest = self._taken
        self._taken.clear()
        self._again.extendleft(reversed(rest))
        return first
