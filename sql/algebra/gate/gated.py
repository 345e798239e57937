"""Windows that hold events back: in a loop an event that is surely held takes no call."""

from __future__ import annotations

from abc import abstractmethod

from sql.algebra.operator import Operator
from sql.codegen.source import SourceWriter


class Gated(Operator):
    """In the text `operator` is the window and `x` the event that arrives."""

    releases_on_arrival = True
    """True if an arrival may release something; else `write_hold` is all that an event does."""

    keeps_values = False
    """True if `x` is what the event contributes, and no event."""

    @abstractmethod
    def write_load(self, source: SourceWriter) -> None:
        """Load the held events into locals: before the loop, and again after each release."""

    @abstractmethod
    def write_hold(self, source: SourceWriter) -> None:
        """The event is held; `continue` where that is sure only on a condition."""

    has_end = False
    """True if `write_end` writes something."""

    def write_end(self, source: SourceWriter) -> None:  # most have nothing left to do
        """After the loop."""
