"""The windows of stream queries, `from x in s [within d] [retain n | retain all]`, and the parts around them.

Several of them in one query are an intersection. A new one is an entry here, or in a file beside this one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sql.algebra.retain.queues import Forever, Lifetime, Newest, Queue
from sql.algebra.windows.catalog import Start
from sql.algebra.windows.facts import Stage, WindowFacts
from sql.costs import Extra, WindowCost
from sql.syntax.window_words import LOT_WINDOWS, LotArgument


class LotPart(WindowFacts, kw_only=True):
    """One part of a stream query's window, for the manual: how it is written."""

    name: str
    signature: str


class LotWindow(LotPart, kw_only=True):
    """One window of stream queries. `make` takes the start and the argument (a Period, a number of items, or
    None), and gives a queue in order of arrival."""

    argument: LotArgument
    make: Callable[[Start, Any], Queue]


LOT_ENTRIES: dict[str, LotWindow] = {}
"""Every window of stream queries by its name."""


def register_lot_window(*entries: LotWindow) -> None:
    """Add windows to the catalog, and the words in front of each to the language."""
    for entry in entries:
        LOT_ENTRIES[entry.name] = entry
        LOT_WINDOWS[entry.name] = entry.argument


def lot_parts() -> tuple[LotPart, ...]:
    """Every part of a stream query's window, in the order of the text."""
    return (CURRENT, *LOT_ENTRIES.values(), EVERY_PERIOD, EVERY_COUNT, UNIQUE, PARTITION)


register_lot_window(
    LotWindow(
        name="within",
        signature="within d",
        argument="period",
        make=lambda start, period: Lifetime(period, start.zone),
        composition=(Stage("Retain", "deadline arrival + {d}"),),
        state="the items of {d}",
        clock="processing or event time",
        example="from v in values within 10.0 select v",
        summary="the items of the last d seconds",
    ),
    LotWindow(
        name="retain all",
        signature="retain all",
        argument="none",
        make=lambda start, nothing: Forever(),
        composition=(Stage("Retain", "never"),),
        state="all items",
        example="from v in values retain all select sum(v)",
        summary="everything",
        unbounded="retain all keeps every item",
    ),
    LotWindow(
        name="retain",
        signature="retain n",
        argument="count",
        make=lambda start, size: Newest(size),
        composition=(Stage("Retain", "count {n}"),),
        state="{n} items",
        example="from v in values retain 5 select v",
        summary="the newest n items",
    ),
)

CURRENT = LotPart(
    name="(none)",
    signature="from v in s",
    composition=(Stage("current lot only"),),
    state="1 lot",
    example="from v in values select v",
    summary="the items of this activation",
)
EVERY_PERIOD = LotPart(
    name="every (time)",
    signature="within d every p",
    composition=(Stage("Gate", "every {p}", origin="creation", note="net"),),
    state="the changes of {p}",
    clock="processing or event time",
    example="from v in values within 1.5 every 1.0 select v",
    summary="the window changes only at update points",
)
EVERY_COUNT = LotPart(
    name="every (count)",
    signature="retain n every c",
    composition=(Stage("Gate", "count {c}", note="net"),),
    state="the changes of {c} items",
    example="from v in values retain 3 every 2 select v",
    summary="the window changes only after each c-th item",
)
UNIQUE = LotPart(
    name="with unique",
    signature="… with unique k",
    composition=(Stage("Latest", "{k}"),),
    state="1 item per key",
    clock="that of the window",
    example="from s in sensors retain 3 with unique s.id select s",
    summary="of equal keys only the newest shows",
)
PARTITION = LotPart(
    name="partition by",
    signature="partition by k …",
    composition=(Stage("Key", "{k}, …"),),
    cost=WindowCost(None, (Extra.HASH,)),
    state="a window per key",
    clock="that of the window",
    example="from s in sensors partition by s.id retain 3 select s",
    summary="one window per key",
    unbounded="partition by keeps a window for every key ever seen",
)
