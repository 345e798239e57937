"""A file that is followed: what is appended is read, also where the file is rotated.

    renamed, and a new one made      the old one is read to its end, then the new one from its beginning
    copied, then cut off             the copy is read to its end, then the file from its beginning
    deleted                          it is read to its end, and a new one from its beginning once it is there

The same holds for what happened while the gateway was away. The file that was renamed or copied is looked for
in the same folder, and so are those that were rotated after it.
"""

from __future__ import annotations

import logging
from itertools import islice
from pathlib import Path

from edge.intake.sources.files.growing import GrowingFile, file_after, file_of
from edge.intake.sources.files.position import FilePlace
from edge.intake.sources.files.records import CsvRecords, line_records
from edge.intake.sources.files.settings import FileSourceSettings
from edge.intake.sources.files.source import (
    BATCH_ROWS,
    FAILURE_PAUSE_MS,
    LOOK_MS,
    FileSource,
    Mark,
    Read,
)
from edge.intake.sources.registry import SourceEnvironment
from rules.problems import in_words
from sql.catalog.streams import Stream

log = logging.getLogger("penstock.sources")


class FollowedFile(FileSource):
    """Looks at the file at an interval, and reads what is new."""

    def __init__(
        self, stream: Stream, file: Path, settings: FileSourceSettings, environment: SourceEnvironment
    ) -> None:
        super().__init__(stream, file, settings, environment)
        self._csv = CsvRecords(settings, stream) if settings.file_type == "csv" else None
        self._records = self._csv or line_records
        self._growing: GrowingFile | None = None
        self._ended_ns: int | None = None
        """When the file that was left, for it had been rotated, was last written."""
        self._read_to: int | None = None
        """So many bytes have been read; None while the lines before the first row are not all there."""

    def run(self) -> None:
        try:
            super().run()
        finally:
            if self._growing is not None:
                self._growing.close()

    def _run(self) -> None:
        while self._goes_on():
            pause_ms = LOOK_MS
            try:
                if not self._look():
                    return
            except (OSError, ValueError) as error:
                self._failed(f"{self._file.name}: {in_words(error)}")
                self._leave()
                pause_ms = FAILURE_PAUSE_MS
            self._has_read()
            if not self._goes_on(pause_ms):
                return

    def _place_of(self, mark: Mark) -> FilePlace:
        assert self._growing is not None, "rows come from a file"
        return self._growing.place(*mark)

    def _look(self) -> bool:
        """Deliver what is new; FALSE when the source shall end."""
        self._position.sync()
        growing = self._growing or self._open()
        if growing.is_cut_off(self._read_to or 0):
            return not self._leave() or self._look()
        before = self._delivered
        if not self._read(growing):
            return False
        if self._delivered != before or not growing.is_replaced(self._file):
            return True
        growing.is_ended = True  # nobody has written into it since it was noticed
        if not self._read(growing):
            return False
        return self._delivered != before or not self._leave() or self._look()

    def _open(self) -> GrowingFile:
        """The file to go on with, at the place to go on from."""
        self._check_place()
        place = self._place
        if self._ended_ns is None:
            growing = self._growing = file_of(self._file, place)
        else:
            growing = self._growing = file_after(self._file, self._ended_ns)
        self._ended_ns = self._read_to = None
        self._counts["connected"] = 1
        if growing.has(place):
            if growing.is_replaced(self._file):
                self._note(f"the rest of {growing.path.name} is read first")
        else:
            if place.offset:
                note = f"it is another file, or was cut off behind row {place.rows}"
                self._note(f"all of {growing.path.name} is read: {note}")
            self._go_to(growing.place(0, 0))
            if place.rows and not place.inode:
                self._skip(growing, place.rows)
        return growing

    def _note(self, note: str) -> None:
        log.warning(
            "source.file_replaced", extra={"source": self.name, "file": self._file.name, "note": note}
        )

    def _leave(self) -> bool:
        """Close the file, once all rows of it are safe; whether they are."""
        with self._counting:
            if self._tokens or self._growing is None:
                return False
            self._ended_ns = self._growing.written_ns if self._growing.is_ended else None
            self._growing.close()
            self._growing = None
            return True

    # --- reading --------------------------------------------------------------------------------------------

    def _read(self, growing: GrowingFile) -> bool:
        """Deliver the rows behind what was read; FALSE when the source shall end."""
        if self._read_to is None:
            self._read_to = self._begin(growing)
        if self._read_to is None:
            return True
        rows, offset = self._delivered[0], self._read_to
        batch: list[Read] = []
        for record in self._records(growing.lines(offset), growing.is_ended):
            offset += record.size
            if record.payload is None:
                continue
            rows += 1
            batch.append(((rows, offset), record.payload, record.reason))
            if self._settings.send_interval or len(batch) >= BATCH_ROWS:
                growing.note(offset)
                if not self._hand_on(batch):
                    return False
                self._read_to, batch = offset, []
        growing.note(offset)
        if batch and not self._hand_on(batch):
            return False
        self._read_to = offset
        return True

    def _begin(self, growing: GrowingFile) -> int | None:
        """Read the lines before the first row; the offset to read from, None where they are not all there."""
        ignored = [*islice(growing.lines(0), self._settings.ignore_start_lines)]
        if len(ignored) < self._settings.ignore_start_lines:
            return None
        begin = sum(map(len, ignored))
        if self._csv is not None and self._settings.has_header:
            size = self._csv.header(growing.lines(begin))
            if size is None:
                return None
            begin += size
        return max(begin, self._delivered[1])

    def _skip(self, growing: GrowingFile, rows: int) -> None:
        """Go on behind so many rows, which an earlier version, or other settings, have counted; from the
        beginning where there are fewer."""
        offset, seen = self._begin(growing) or 0, 0
        for record in self._records(growing.lines(offset), False):
            offset += record.size
            seen += record.payload is not None
            if seen == rows:
                growing.note(offset)
                self._go_to(growing.place(rows, offset))
                return
