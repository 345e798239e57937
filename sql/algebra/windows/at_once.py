"""Windows that let events in at once."""

from __future__ import annotations

from sql.algebra.retain.by_key import FirstPerKey, LatestPerKey
from sql.algebra.retain.ordered import Ranked, RankedPerKey, Scheduled
from sql.algebra.retain.predicate import WhileTrue
from sql.algebra.retain.queues import DataClock, FirstCount, FirstUntil, Forever, Gap, Lifetime, Newest
from sql.algebra.windows.catalog import WindowSpec, parameters, register_window
from sql.algebra.windows.facts import Stage
from sql.costs import Extra, Growth, WindowCost

register_window(
    WindowSpec(
        name="length",
        parameters=parameters("size:size"),
        make=lambda start, size: Newest(size),
        composition=(Stage("Retain", "count {n}"),),
        state="{n} events",
        example="E#length(5)",
        summary="the newest n events",
    )
)
register_window(
    WindowSpec(
        name="time",
        parameters=parameters("period:period"),
        make=lambda start, period: Lifetime(period, start.zone),
        composition=(Stage("Retain", "deadline arrival + {d}"),),
        state="the events of {d}",
        clock="processing",
        example="E#time(10 sec)",
        summary="the events of the last d",
    )
)
register_window(
    WindowSpec(
        name="ext_timed",
        parameters=parameters("timestamp:value period:period"),
        make=lambda start, timestamp, period: DataClock(timestamp.nodes, timestamp.of, period, start.zone),
        composition=(Stage("Retain", "data clock {ts}, {d}"),),
        cost=WindowCost(Growth.AMORTISED),
        state="the events of {d}",
        clock="the events' own",
        example="E#ext_timed(ts, 10 sec)",
        summary="the last d by the events' own time",
    )
)
register_window(
    WindowSpec(
        name="time_accum",
        parameters=parameters("period:period"),
        make=lambda start, period: Gap(period, start.zone),
        composition=(Stage("Retain", "gap {d}"),),
        state="the events since the last gap",
        clock="processing",
        example="E#time_accum(10 sec)",
        summary="everything until nothing arrives for d",
    )
)
register_window(
    WindowSpec(
        name="keepall",
        make=lambda start: Forever(),
        composition=(Stage("Retain", "never"),),
        state="all events",
        example="E#keepall",
        summary="everything",
        unbounded="keepall keeps every event",
    )
)
register_window(
    WindowSpec(
        name="firstlength",
        parameters=parameters("size:size"),
        make=lambda start, size: FirstCount(size),
        composition=(Stage("Retain", "admission first {n}"),),
        state="{n} events",
        example="E#firstlength(5)",
        summary="the first n events",
    )
)
register_window(
    WindowSpec(
        name="firsttime",
        parameters=parameters("period:period"),
        make=lambda start, period: FirstUntil(period.add(start.now_ms, start.zone)),
        composition=(Stage("Retain", "admission until start + {d}"),),
        state="the events of the first {d}",
        clock="processing",
        example="E#firsttime(10 sec)",
        summary="what arrives within d of the start",
    )
)
register_window(
    WindowSpec(
        name="firstevent",
        namespace="std",
        make=lambda start: FirstCount(1),
        composition=(Stage("Retain", "admission first 1"),),
        state="1 event",
        example="E#firstevent",
        summary="the very first event",
    )
)
register_window(
    WindowSpec(
        name="lastevent",
        namespace="std",
        make=lambda start: Newest(1),
        composition=(Stage("Retain", "count 1"),),
        state="1 event",
        example="E#lastevent",
        summary="the last event",
    )
)
register_window(
    WindowSpec(
        name="unique",
        namespace="std",
        parameters=parameters("keys:keys"),
        make=lambda start, keys: LatestPerKey(keys.nodes, keys.of),
        composition=(Stage("Retain", "replace by {k}"),),
        state="1 event per key",
        example="E#unique(k)",
        summary="the last event per key",
        unbounded="unique keeps an event for every key ever seen",
    )
)
register_window(
    WindowSpec(
        name="firstunique",
        namespace="std",
        parameters=parameters("keys:keys"),
        make=lambda start, keys: FirstPerKey(keys.nodes, keys.of),
        composition=(Stage("Retain", "admission first per {k}"),),
        state="1 event per key",
        example="E#firstunique(k)",
        summary="the first event per key",
        unbounded="firstunique keeps an event for every key ever seen",
    )
)
register_window(
    WindowSpec(
        name="sort",
        namespace="ext",
        parameters=parameters("size:size criteria:criteria"),
        make=lambda start, size, criteria: Ranked(size, criteria),
        composition=(Stage("Retain", "rank {n} by {criteria}"),),
        cost=WindowCost(Growth.LOGARITHM),
        state="{n} events",
        example="E#sort(10, price desc)",
        summary="the first n in sort order",
    )
)
register_window(
    WindowSpec(
        name="rank",
        namespace="ext",
        parameters=parameters("keys:keys size:size criteria:criteria"),
        make=lambda start, keys, size, criteria: RankedPerKey(size, criteria, keys.of),
        composition=(Stage("Retain", "rank {n} by {criteria} + replace by {k}"),),
        cost=WindowCost(Growth.LOGARITHM),
        state="{n} events",
        example="E#rank(k, 10, price desc)",
        summary="the first n among the last per key",
    )
)
register_window(
    WindowSpec(
        name="time_order",
        namespace="ext",
        parameters=parameters("timestamp:value period:period"),
        make=lambda start, timestamp, period: Scheduled(timestamp.of, period, start.zone),
        composition=(Stage("Retain", "deadline {ts} + {d}, ordered"),),
        cost=WindowCost(Growth.LOGARITHM),
        state="the events of {d}",
        clock="processing",
        example="E#time_order(ts, 10 sec)",
        summary="events put in order of their own time, held for d",
    )
)
register_window(
    WindowSpec(
        name="timetolive",
        namespace="ext",
        parameters=parameters("timestamp:value"),
        make=lambda start, timestamp: Scheduled(timestamp.of, None, start.zone),
        composition=(Stage("Retain", "deadline {ts}, ordered"),),
        cost=WindowCost(Growth.LOGARITHM),
        state="the living events",
        clock="processing",
        example="E#timetolive(ts)",
        summary="events until their own time",
        unbounded="timetolive keeps events as long as their own time stamps say",
    )
)
register_window(
    WindowSpec(
        name="expr",
        parameters=parameters("predicate:predicate"),
        make=lambda start, predicate: WhileTrue(predicate),
        composition=(Stage("Retain", "while {predicate} of the oldest"),),
        cost=WindowCost(Growth.AMORTISED, (Extra.PREDICATE,)),
        state="what the predicate keeps",
        example="E#expr(sum(price) < 1000)",
        summary="the newest for which the predicate holds",
    )
)
