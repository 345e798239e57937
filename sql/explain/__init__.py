"""Showing what a plan does: as a tree of the algebra, and as a picture of events over time.

`tree` reads a plan only. `record` runs it on recorded events and notes in a `timeline` what enters and leaves
its windows; `text` and `svg` draw that. Nothing here changes how a rule runs.
"""

from __future__ import annotations

from sql.explain.record import record
from sql.explain.svg import draw_svg, render_svg
from sql.explain.text import draw_text, render_text
from sql.explain.timeline import Timeline
from sql.explain.tree import explain, unbounded

__all__ = ["Timeline", "draw_svg", "draw_text", "explain", "record", "render_svg", "render_text", "unbounded"]
