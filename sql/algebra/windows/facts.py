"""What every entry of the window catalog says of its window, whichever language writes it.

In a composition single letters stand for parameters: d, p, t, m lengths of time; n, c counts; k keys.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowFacts:
    """What a window is made of, and what it costs: for `explain`, and for the table of windows in the manual."""

    composition: str
    """The operators of the window, in the order in which events meet them."""
    cost: str
    """Per event."""
    state: str
    """What it holds at most."""
    clock: str
    example: str
    summary: str
    unbounded: str | None = None
    """Why there is no bound on what it holds, as a sentence; None where there is one."""
