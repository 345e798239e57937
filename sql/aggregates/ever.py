"""firstever, lastever, countever and leaving: results that include events that have left.

minever and maxever are defined with min and max, minbyever and maxbyever with minby and maxby.
"""

from __future__ import annotations

from collections.abc import Callable

from sql.aggregates.base import Accumulator, Aggregate, EventView, Removal, register
from sql.aggregates.order import make_first, make_last
from sql.aggregates.sums import Count
from sql.aggregates.wrap import NotNull
from sql.functions.definition import Parameter
from sql.types import Type


class Leaving(Accumulator):
    """True once a value has left."""

    __slots__ = ("left",)

    def __init__(self, removal: Removal) -> None:
        self.left = False

    def add(self, value: object, event: EventView) -> None:
        pass

    def remove(self, value: object, event: EventView) -> None:
        self.left = True

    def result(self) -> bool:
        return self.left

    def snapshot(self) -> bool:
        return self.left

    def restore(self, state: bool, events: Callable[[int], EventView]) -> None:
        self.left = state


X = Parameter("x")

register(
    Aggregate(
        "firstever",
        lambda removal: NotNull(make_first(Removal.NEVER)),
        "The first value that ever came.",
        (X,),
        lambda kinds: kinds[0],
        ever=True,
        whole_row=True,
        examples=(("firstever(x) over [null, 4, 5]", 4),),
    )
)
register(
    Aggregate(
        "lastever",
        lambda removal: NotNull(make_last(Removal.NEVER)),
        "The last value that ever came.",
        (X,),
        lambda kinds: kinds[0],
        ever=True,
        whole_row=True,
        examples=(("lastever(x) over [4, 5, null]", 5),),
    )
)
register(
    Aggregate(
        "countever",
        Count,
        "How many rows, or values that are not NULL, ever came.",
        (Parameter("x", optional=True),),
        Type.INTEGER,
        ever=True,
        examples=(("countever(x) over [4, null]", 1),),
    )
)
register(
    Aggregate(
        "leaving",
        Leaving,
        "Whether any event has left the window yet.",
        (),
        Type.BOOLEAN,
        recalls=True,
        examples=(("leaving() over [4]", False),),
    )
)
