"""Observing a sampled rule: the edges of its composition, written into the text only for an observer.

FILTER --passed--> window --entered--> content --left, cleared-->
                                       content --shown--> rows
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from sql.algebra.sample.instance import Instance


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
