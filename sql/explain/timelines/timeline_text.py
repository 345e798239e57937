"""A timeline as text: one line per event, samples and rows below.

o-----|      arrives and enters, leaves        o....|----|    waits at a gate before it enters
o----->      still inside at the end           o              never inside; the remark gives the reason
[====)       the span of a sample
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sql.errors import shortened
from sql.explain.timelines.axis import Axis
from sql.explain.timelines.timeline import Line, Post, Sample, Timeline, label_of

TICKS_MAX = 9
COLUMNS_MAX = 84
LABEL_MAX = 24
WIDTH = 140
"""Columns of a line, as long as one row fits."""

ROWS_SHOWN = 6
"""The number of rows of one output that are printed."""


def render_text(timeline: Timeline) -> str:
    """A record as text, at most about 140 columns wide."""
    axis = Axis.over(timeline.start_ms, timeline.end_ms, TICKS_MAX)
    bounds = [timeline.bounds(sample, axis.label) for sample in timeline.samples]
    canvas = _Canvas(
        axis, [shortened(label, LABEL_MAX) for label in (*(line.label for line in timeline.lines), *bounds)]
    )
    out = [timeline.sql, timeline.window, "", *canvas.axis()]
    out += [canvas.event(line) for line in timeline.lines]
    if timeline.samples:
        out.append("")
        out += [
            canvas.sample(*pair, timeline.brackets) for pair in zip(timeline.samples, bounds, strict=True)
        ]
    if timeline.posts and not timeline.samples:
        out += [
            canvas.marks({post.at_ms for post in timeline.posts}),
            *(canvas.post(post, timeline.removes) for post in timeline.posts),
        ]
    if axis.note:
        out += ["", axis.note]
    if timeline.left_out:
        out += ["", f"{timeline.left_out} further events are not drawn"]
    return "\n".join(line.rstrip() for line in out) + "\n"


class _Canvas:
    """A canvas with a fixed number of columns per tick, so that round instants fall on round columns."""

    def __init__(self, axis: Axis, labels: list[str]) -> None:
        self.axis_of = axis
        ticks = len(axis.ticks_ms) - 1
        per_tick = next((n for n in (40, 20, 10, 8, 5, 4) if n * ticks <= COLUMNS_MAX), COLUMNS_MAX // ticks)
        self.columns = max(1, per_tick) * ticks
        self.gutter = max([len(label) for label in labels] + [len(axis.unit) + 2, 8]) + 2

    def column(self, at_ms: int) -> int:
        return round(self.axis_of.place(at_ms, self.columns))

    def row(self, label: str, drawing: str, remark: str = "") -> str:
        text = f"{shortened(label, LABEL_MAX):<{self.gutter}}{drawing:<{self.columns + 1}}"
        return f"{text}  {remark}" if remark else text

    def axis(self) -> list[str]:
        cells = [" "] * (self.columns + 12)
        line = ["-"] * (self.columns + 1)
        free = 0
        for tick in self.axis_of.ticks_ms:
            at, text = self.column(tick), self.axis_of.label(tick)
            line[at] = "+"
            if at >= free:
                cells[at : at + len(text)] = text
                free = at + len(text) + 1
        return [self.row(self.axis_of.unit, "".join(cells)).rstrip(), self.row("", "".join(line))]

    def event(self, line: Line) -> str:
        cells = [" "] * (self.columns + 1)
        arrival = self.column(line.arrival_ms)
        if line.stays:
            self._fill(cells, arrival, self.column(line.stays[0].entry_ms), ".")
        elif line.waiting:
            self._fill(cells, arrival, self.columns, ".")
        for stay in line.stays:
            entry = self.column(stay.entry_ms)
            leave = self.columns if stay.leave_ms is None else self.column(stay.leave_ms)
            self._fill(cells, entry, leave, "-")
            cells[entry] = "|"
            cells[leave] = ">" if stay.leave_ms is None else "|"
        cells[arrival] = "o"
        return self.row(line.label, "".join(cells), line.remark)

    def _fill(self, cells: list[str], start: int, end: int, mark: str) -> None:
        for at in range(start, end):
            cells[at] = mark

    def sample(self, sample: Sample, label: str, brackets: tuple[str, str]) -> str:
        cells = [" "] * (self.columns + 1)
        start, end = self.column(sample.start_ms), self.column(sample.end_ms)
        self._fill(cells, start, end, "=")
        cells[start] = "<" if sample.start_ms < self.axis_of.start_ms else brackets[0]
        cells[end] = brackets[1]
        room = WIDTH - self.gutter - self.columns - 3
        return self.row(label, "".join(cells), rows_text(sample.rows, room) or "no rows")

    def marks(self, instants: set[int]) -> str:
        cells = [" "] * (self.columns + 1)
        for at_ms in instants:
            cells[self.column(at_ms)] = "^"
        return self.row("", "".join(cells))

    def post(self, post: Post, removes: bool) -> str:
        signs = (("-" if removes else "+", post.inserted), ("-", post.removed))
        room = (WIDTH - self.gutter) // max(1, sum(bool(rows) for _, rows in signs)) - 5
        parts = [f"{sign} {rows_text(rows, room)}" for sign, rows in signs if rows]
        return f"{'at ' + self.axis_of.label(post.at_ms):<{self.gutter}}{'   '.join(parts) or 'no rows'}"


def rows_text(rows: Sequence[dict[str, Any]], room: int = 1_000) -> str:
    """Rows in few words: as many as fit into `room` characters, at most `ROWS_SHOWN`, one at least."""
    labels = [label_of(row, None) for row in rows[:ROWS_SHOWN]]
    while True:
        shown = ", ".join(labels)
        text = shown if len(rows) == len(labels) else f"{shown}, … {len(rows)} rows"
        if len(text) <= room or len(labels) <= 1:
            return text
        labels.pop()
