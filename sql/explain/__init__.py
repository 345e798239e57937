"""Show a plan as a tree of the algebra, and its work as a picture of events over time.

`tree` reads a plan only. `record` runs it on recorded events and notes in a `timeline` the events that enter
and leave its windows; `timeline_text` and `svg` draw that. Nothing here changes the execution of a rule.
"""

from __future__ import annotations

from sql.explain.recording import record
from sql.explain.svg import draw_svg, render_svg
from sql.explain.timeline import Timeline
from sql.explain.timeline_text import draw_text, render_text
from sql.explain.tree import explain, unbounded

__all__ = ["Timeline", "draw_svg", "draw_text", "explain", "record", "render_svg", "render_text", "unbounded"]
