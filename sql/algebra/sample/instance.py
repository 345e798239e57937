"""The instance of a sampled window: what a window and its content remember of one partition."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from sql.algebra.sample.panes import Pane
    from sql.algebra.sample.totals import Total


class Instance(Protocol):
    """An object of a generated class, with just those of these slots that its window
    and its content declare."""

    key: Hashable
    """The values of OVER(PARTITION BY)."""
    order: int | None
    """Its place among the instances; None before its first event and after its last."""
    queued: int | None
    """The deadline under which it stands in the heap of timers."""

    # --- what windows remember ------------------------------------------------------------------------------

    end_ms: int | None
    """The end of the open window or pane; None while none is open."""
    first_ms: int | None
    """The first event of the open window."""
    last_ms: int
    """The newest event of a session."""
    tick_ms: int
    pane_ms: int
    count: int
    since: int
    pending: deque[Any]

    # --- what contents keep ---------------------------------------------------------------------------------

    groups: dict[Hashable, Any]
    only: Any
    """The group of a query without GROUP BY."""
    members: deque[Any]
    """Entries of the events, the oldest first."""
    times: deque[int]
    """The instants of the events, the oldest first."""
    size: int
    """Events in the open window, where the query counts them all."""
    panes: deque[Pane]
    totals: dict[Hashable, Total]
    joined: int
    """Groups that have joined totals so far."""
    spare: int
    """So many groups the loop may still open by itself."""
