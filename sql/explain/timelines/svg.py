"""A timeline as SVG: events as bars over a time axis, samples and rows below. No scripts, no fonts to fetch.

From top to bottom: the rule, the axis, one row per event, then either the samples of a window or the lanes of
the insert and the remove stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from sql.errors import shortened
from sql.explain.timelines.axis import Axis
from sql.explain.timelines.timeline import Line, Row, Sample, Timeline, label_of
from sql.explain.timelines.timeline_text import rows_text

WIDTH = 960
MARGIN = 24
ROW = 22
BAR = 12
CHIP = 18
GLYPH = 6.7
"""The width of a character of the small monospace text, by which chips and gutters are measured."""

LABEL_MAX = 28
RESULT_MAX = 34
"""The greatest width of results, in characters, for a column of their own."""

TICKS_MAX = 11
CHIPS_PER_POST = 6

STYLE = """
    text { font: 11px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace;
           fill: #1c2430 }
    .page { fill: #ffffff } .sql { font-size: 13px; font-weight: 600 }
    .muted { fill: #66707d } .grid { stroke: #e4e8ed } .axis { stroke: #66707d }
    .guide { stroke: #b6bfca; stroke-dasharray: 2 3 }
    .bar { fill: #cfe1f7; stroke: #3b74b9 } .dot { fill: #1f5aa0 }
    .wait { stroke: #1f5aa0; stroke-dasharray: 1.5 3 }
    .sample { fill: #e9e0f7; stroke: #7c58b5 }
    .in { fill: #dcf1e1; stroke: #2f8f4e } .out { fill: #fbe5d8; stroke: #c8692e }
    .plus { fill: #155d2c } .minus { fill: #8a3a0e }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6e9ee } .page { fill: #14171c } .muted { fill: #9aa4b1 } .grid { stroke: #262c34 }
      .axis { stroke: #9aa4b1 } .guide { stroke: #47515e }
      .bar { fill: #22405f; stroke: #7fb2ee } .dot { fill: #9cc6f7 } .wait { stroke: #9cc6f7 }
      .sample { fill: #37294d; stroke: #b89be6 }
      .in { fill: #173b24; stroke: #5fbf80 } .out { fill: #472517; stroke: #e8915c }
      .plus { fill: #a5e5ba } .minus { fill: #f7bd9b }
    }
"""


def render_svg(timeline: Timeline) -> str:
    """A record as an SVG document, 960 units wide."""
    drawing = _Drawing(timeline)
    drawing.heading()
    drawing.axis_labels()
    top = drawing.y
    for line in timeline.lines:
        drawing.event(line)
    drawing.y += 8
    if timeline.samples:
        for sample in timeline.samples:
            drawing.sample(sample)
    else:
        inserted = [(post.at_ms, post.inserted) for post in timeline.posts]
        if timeline.removes:
            drawing.lane("remove", "out", "minus", inserted)
        else:
            drawing.lane("insert", "in", "plus", inserted)
            drawing.lane("remove", "out", "minus", [(post.at_ms, post.removed) for post in timeline.posts])
    drawing.grid(top)
    drawing.legend()
    return drawing.document()


@dataclass(slots=True)
class _Drawing:
    """The document as it grows; `y` is the top of the next row."""

    timeline: Timeline
    y: float = MARGIN
    shapes: list[str] = field(default_factory=list)
    below: list[str] = field(default_factory=list)
    axis: Axis = field(init=False)
    left: float = field(init=False)
    right: float = field(init=False)
    waits: bool = False
    has_column: bool = False

    def __post_init__(self) -> None:
        timeline = self.timeline
        self.axis = Axis.over(timeline.start_ms, timeline.end_ms, TICKS_MAX)
        bounds = [timeline.bounds(sample, self.axis.label) for sample in timeline.samples]
        labels = [*(line.label for line in timeline.lines), *bounds, "seconds"]
        self.left = MARGIN + min(LABEL_MAX, max(map(len, labels))) * GLYPH + 18
        longest = max((len(_result(sample)) for sample in timeline.samples), default=0)
        self.has_column = 0 < longest <= RESULT_MAX
        self.right = WIDTH - MARGIN - 12 - (longest * GLYPH if self.has_column else 0)

    def x(self, at_ms: int) -> float:
        return self.left + self.axis.place(at_ms, self.right - self.left)

    # --- shapes ---------------------------------------------------------------------------------------------

    def text(self, x: float, y: float, words: str, style: str = "", anchor: str = "start") -> None:
        css = f' class="{style}"' if style else ""
        self.shapes.append(
            f'<text x="{x:.1f}" y="{y:.1f}"{css} text-anchor="{anchor}">{escape(words)}</text>'
        )

    def line(self, x1: float, y1: float, x2: float, y2: float, style: str, width: float = 1.0) -> str:
        return (
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{style}" '
            f'stroke-width="{width:g}"/>'
        )

    def rect(self, x: float, y: float, width: float, height: float, style: str, radius: float = 3) -> None:
        self.shapes.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius:g}" '
            f'class="{style}"/>'
        )

    # --- parts ----------------------------------------------------------------------------------------------

    def heading(self) -> None:
        for words in _wrapped(self.timeline.sql, 112):
            self.y += 16
            self.text(MARGIN, self.y - 4, words, "sql")
        for words in _wrapped(self.timeline.window, 130):
            self.y += 15
            self.text(MARGIN, self.y, words, "muted")
        self.y += 26

    def axis_labels(self) -> None:
        unit = self.axis.unit
        self.text(MARGIN, self.y, unit, "muted")
        for tick in self.axis.ticks_ms:
            self.text(self.x(tick), self.y, self.axis.label(tick), "muted", "middle")
        self.y += 8
        self.shapes.append(self.line(self.left, self.y, self.right, self.y, "axis"))

    def event(self, line: Line) -> None:
        middle = self.y + ROW / 2 + 2
        self.text(MARGIN, middle + 4, shortened(line.label, LABEL_MAX))
        arrival = self.x(line.arrival_ms)
        entry = (
            line.stays[0].entry_ms if line.stays else self.axis.end_ms if line.waiting else line.arrival_ms
        )
        if self.x(entry) > arrival:
            self.waits = True
            self.shapes.append(self.line(arrival, middle, self.x(entry), middle, "wait", 1.6))
        for stay in line.stays:
            self.stay(self.x(stay.entry_ms), None if stay.leave_ms is None else self.x(stay.leave_ms), middle)
        self.shapes.append(f'<circle cx="{arrival:.1f}" cy="{middle:.1f}" r="3.4" class="dot"/>')
        if line.remark:
            self.text(arrival + 10, middle + 4, shortened(line.remark, 60), "muted")
        self.y += ROW

    def stay(self, entry: float, leave: float | None, middle: float) -> None:
        top = middle - BAR / 2
        if leave is not None:
            self.rect(entry, top, max(leave - entry, 2.5), BAR, "bar")
            return
        end = self.right
        self.shapes.append(
            f'<path d="M{end:.1f} {top:.1f} H{entry + 3:.1f} q-3 0 -3 3 v{BAR - 6} q0 3 3 3 H{end:.1f} '
            f'l6 -{BAR / 2:g} z" class="bar"/>'
        )

    def sample(self, sample: Sample) -> None:
        middle = self.y + ROW / 2 + 2
        start, end = self.x(sample.start_ms), self.x(sample.end_ms)
        self.rect(start, middle - BAR / 2, max(end - start, 2.5), BAR, "sample", 1)
        self.text(
            MARGIN, middle + 4, shortened(self.timeline.bounds(sample, self.axis.label), LABEL_MAX), "muted"
        )
        self.result(sample, start, end, middle + 4)
        self.y += ROW

    def result(self, sample: Sample, start: float, end: float, y: float) -> None:
        """The rows of a sample: in a column if all are short, else beside its bar, on the side with more
        room."""
        words = _result(sample)
        if self.has_column:
            self.text(self.right + 14, y, words)
        elif self.right - end >= start - self.left:
            self.text(end + 8, y, shortened(words, int((WIDTH - MARGIN - end - 8) / GLYPH)))
        else:
            self.text(start - 8, y, shortened(words, int((start - 8 - self.left) / GLYPH)), "", "end")

    def lane(self, name: str, box: str, style: str, outputs: Sequence[tuple[int, Sequence[Row]]]) -> None:
        """Rows as chips below their instants, on as many levels as they need."""
        chips = [chip for at_ms, rows in outputs for chip in self._chips(at_ms, rows)]
        if not chips:
            return
        free: list[float] = []
        start = self.y + 6
        for x, words in chips:
            width = len(words) * GLYPH + 10
            edge = min(max(x - width / 2, self.left - 30), WIDTH - MARGIN - width)
            level = next((i for i, end in enumerate(free) if edge >= end), len(free))
            free[level : level + 1] = [edge + width + 3]
            self.rect(edge, start + level * (CHIP + 3), width, CHIP, box, 4)
            self.text(edge + width / 2, start + level * (CHIP + 3) + 13, words, style, "middle")
        self.text(MARGIN, start + 13, name, "muted")
        self.y = start + len(free) * (CHIP + 3)

    def _chips(self, at_ms: int, rows: Sequence[Row]) -> list[tuple[float, str]]:
        shown = [(self.x(at_ms), shortened(label_of(row, None), 40)) for row in rows[:CHIPS_PER_POST]]
        return (
            shown
            if len(rows) <= CHIPS_PER_POST
            else [*shown, (self.x(at_ms), f"+{len(rows) - CHIPS_PER_POST} more")]
        )

    def grid(self, top: float) -> None:
        """Lines behind everything: ticks, and the instants of output."""
        for tick in self.axis.ticks_ms:
            self.below.append(self.line(self.x(tick), top, self.x(tick), self.y, "grid"))
        for at_ms in self.timeline.points_ms:
            self.below.append(self.line(self.x(at_ms), top, self.x(at_ms), self.y, "guide"))

    def legend(self) -> None:
        self.y += 26
        x, middle = float(MARGIN), self.y - 4
        for kind, words in (
            ("dot", "arrives"),
            ("wait", "waits"),
            ("bar", "in the window"),
            ("sample", "a sample covers"),
        ):
            if (kind == "sample" and not self.timeline.samples) or (kind == "wait" and not self.waits):
                continue
            if kind == "dot":
                self.shapes.append(f'<circle cx="{x + 4:.1f}" cy="{middle:.1f}" r="3.4" class="dot"/>')
            elif kind == "wait":
                self.shapes.append(self.line(x, middle, x + 22, middle, "wait", 1.6))
            else:
                self.rect(x, middle - 5, 22, 10, kind, 3)
            offset = 14 if kind == "dot" else 28
            self.text(x + offset, middle + 4, words, "muted")
            x += offset + len(words) * GLYPH + 22
        notes = [self.axis.note] if self.axis.note else []
        if self.timeline.left_out:
            notes.append(f"{self.timeline.left_out} further events are not drawn")
        if notes:
            self.text(WIDTH - MARGIN, middle + 4, "; ".join(notes), "muted", "end")

    def document(self) -> str:
        height = self.y + MARGIN - 6
        inside = "\n  ".join([*self.below, *self.shapes])
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" '
            f'height="{height:.0f}" role="img" aria-labelledby="t d">\n'
            f'  <title id="t">{escape(shortened(self.timeline.sql, 200))}</title>\n'
            f'  <desc id="d">{escape(_description(self.timeline, self.axis))}</desc>\n'
            f"  <style>{STYLE}  </style>\n"
            f'  <rect width="{WIDTH}" height="{height:.0f}" class="page"/>\n  {inside}\n</svg>\n'
        )


def _result(sample: Sample) -> str:
    return rows_text(sample.rows) or "no rows"


def _wrapped(text: str, length: int) -> list[str]:
    import textwrap

    return textwrap.wrap(text, length) or [""]


def _description(timeline: Timeline, axis: Axis) -> str:
    """The picture as text for screen readers: each event's stay, then the outputs."""
    parts = [f"Times in {axis.unit}."]
    for line in timeline.lines:
        stays = [
            f"from {axis.label(stay.entry_ms)} "
            + ("to the end" if stay.leave_ms is None else f"to {axis.label(stay.leave_ms)}")
            for stay in line.stays
        ]
        inside = f"in the window {', '.join(stays)}" if stays else line.remark or "no window"
        parts.append(f"{line.label} arrives at {axis.label(line.arrival_ms)}, {inside}.")
    outputs: list[tuple[int, list[Row], Sequence[Row]]] = [
        (sample.at_ms, sample.rows, ()) for sample in timeline.samples
    ]
    if not outputs:
        outputs = [(post.at_ms, post.inserted, post.removed) for post in timeline.posts]
    for at_ms, inserted, removed in outputs:
        said = [
            f"{word} {rows_text(rows)}"
            for word, rows in (("inserted", inserted), ("removed", removed))
            if rows
        ]
        parts.append(f"At {axis.label(at_ms)}: {'; '.join(said) or 'no rows'}.")
    return " ".join(parts)
