"""The costs of aggregates and windows, as data: the compiler chooses by them, `explain` and the manual print
them.

n is the number of values or events held.
"""

from __future__ import annotations

from enum import Enum

from sql.record import Record


class Growth(Enum):
    """The growth of a cost with n."""

    CONSTANT = "O(1)"
    AMORTISED = "O(1) amortised"
    LOGARITHM = "O(log n)"
    ROOT = "O(√n)"
    LINEAR = "O(n)"


class Cost(Record, kw_only=True):
    """The cost of an aggregate.

    event      per event
    any_order  per event where values leave in any order, if that differs
    result     per result
    leaving    per result where values leave, if that differs
    """

    event: Growth = Growth.CONSTANT
    any_order: Growth | None = None
    result: Growth = Growth.CONSTANT
    leaving: Growth | None = None

    def where(self, *, values_leave: bool, in_any_order: bool) -> Cost:
        """The cost for one way of leaving."""
        event = self.any_order if in_any_order and self.any_order is not None else self.event
        result = self.leaving if values_leave and self.leaving is not None else self.result
        return Cost(event=event, result=result)

    def __str__(self) -> str:
        text = self.event.value
        if self.any_order is not None:
            text += f"; {self.any_order.value} where values leave in any order"
        if self.result is not Growth.CONSTANT:
            text += f", {self.result.value} per result"
        if self.leaving is not None:
            text += f", {self.leaving.value} per result where values leave"
        return text


CONSTANT = Cost()
"""The cost of most aggregates, whatever is held."""


class Extra(Enum):
    """Further costs of the events of a window."""

    HASH = "hash of the key"
    PREDICATE = "predicate"
    ROWS = "rows per sample"


class WindowCost(Record):
    """The cost of a window per event: by itself (None: that of the window inside), and further costs."""

    event: Growth | None = Growth.CONSTANT
    besides: tuple[Extra, ...] = ()

    def __str__(self) -> str:
        own = "" if self.event is None else self.event.value
        return " + ".join([own, *(extra.value for extra in self.besides)]).strip()


CONSTANT_WINDOW = WindowCost()
"""The cost of most windows."""
