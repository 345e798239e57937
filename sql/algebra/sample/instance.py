"""The instance of a sampled window: what a window and its content remember of one partition.

A tap observes it: the edges of the composition, written into the text only for an observer.

FILTER --passed--> window --entered--> content --left, cleared-->
                                       content --shown--> rows
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Protocol

from sql.codegen.source import SourceWriter


class Instance(Protocol):
    """An object of a generated class, with just those of these slots that its window
    and its content declare."""

    key: Hashable
    """The values of OVER(PARTITION BY)."""
    order: int | None
    """Its place among the instances; None before its first event and after its last."""
    due_ms: int | None
    """The deadline under which it stands among the others."""

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
    whole: Any
    """The group of a query without GROUP BY."""
    members: deque[Any]
    """The events, or entries of them, the oldest first."""
    times: deque[int]
    """The instants of the events, the oldest first."""
    size: int
    """Events in the open window, where the query counts them all."""
    panes: deque[Any]
    totals: dict[Hashable, Any]
    joined: int
    """Groups that have joined totals so far."""
    spare: int
    """So many groups the loop may still open by itself."""


class Tap(Protocol):
    """An observer of one rule. `p` is the instance of the window, its only one or that of a key."""

    def passed(self, index: int, event: object, at_ms: int) -> None:
        """An event of the source at `index` has passed FILTER."""

    def entered(self, p: Instance) -> None:
        """The event that passed last is in the window."""

    def left(self, p: Instance) -> None:
        """The oldest event of the window has left it."""

    def cleared(self, p: Instance, at_ms: int) -> None:
        """All events of the window have left it."""

    def shown(self, p: Instance, start_ms: int, end_ms: int, trigger_ms: int, rows: Sequence[Any]) -> None:
        """The window [start, end) was shown as these rows."""


def instance_class(source: SourceWriter, name: str, slots: Mapping[str, str]) -> None:
    """Write the class of instances: the slots of window and content with their first values."""
    with source.block(f"class {name}:"):
        source.line(f"__slots__ = {('key', 'order', 'due_ms', *slots)!r}")
        with source.block("def __init__(p, key):"):
            source.line("p.key = key")
            source.line("p.order = p.due_ms = None")
            for slot, first in slots.items():
                source.line(f"p.{slot} = {first}")
    source.line("")


def write_locals(source: SourceWriter, locals_: Mapping[str, str]) -> None:
    """Write the locals of a loop over one instance, `p`."""
    for name, text in locals_.items():
        source.line(f"{name} = {text}")
