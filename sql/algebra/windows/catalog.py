"""The window catalog: every EPL window as a composition of the few operators. A new window is one entry here.

An entry says how the window is written (its parameters), what it is made of (`make`), and what it costs. The
documentation's window table, `explain` and the binder's error messages derive from it.

Parameter kinds: size (a positive whole number), period (a length of time), value (an expression per event),
keys and criteria (one or more expressions per event), predicate (an expression over built-in properties),
include (a boolean), reference (an instant in ms), flags (FORCE_UPDATE, START_EAGER), extras (further
columns).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple
from zoneinfo import ZoneInfo

from sql.algebra.derived.statistics import Size
from sql.algebra.event import Event
from sql.algebra.gate.triggers import AfterCount, CountOrSince, DataBoundary, Every
from sql.algebra.retain.keyed import FirstPerKey, LatestPerKey
from sql.algebra.retain.ordered import Ranked, RankedPerKey, Scheduled
from sql.algebra.retain.predicate import WhenTrue, WhileTrue
from sql.algebra.retain.queues import DataClock, FirstCount, FirstUntil, Forever, Gap, Lifetime, Newest

ParameterKind = Literal[
    "size", "period", "value", "keys", "criteria", "predicate", "include", "reference", "flags", "extras"
]


class Computed(NamedTuple):
    """What is computed from each event: as bound expressions, for the text of a loop, and as a function."""

    nodes: Any
    of: Callable[[Event], Any]


class WindowParameter(NamedTuple):
    """One parameter of a window."""

    name: str
    kind: ParameterKind
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Start:
    """What a window may know when its instance starts."""

    now_ms: int
    zone: ZoneInfo


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """One window. `make` takes the start and the evaluated arguments by name, and gives a policy, a trigger
    or a statistic."""

    name: str
    namespace: str
    role: Literal["retain", "batch", "derived", "group", "merge"]
    parameters: tuple[WindowParameter, ...]
    make: Callable[..., Any] | None
    composition: str
    cost: str
    state: str
    clock: str
    example: str
    summary: str

    @property
    def signature(self) -> str:
        """How the window is written."""
        inside = ", ".join(f"[{p.name}]" if p.optional else p.name for p in self.parameters)
        return f"{self.name}({inside})" if inside else self.name


_windows: dict[str, WindowSpec] = {}


def lookup(name: str) -> WindowSpec | None:
    """The window called `name` (lower case)."""
    return _windows.get(name)


def all_windows() -> tuple[WindowSpec, ...]:
    """Every window, in the order of the catalog."""
    return tuple(_windows.values())


def register_window(
    name: str,
    namespace: str,
    role: Any,
    parameters: str,
    make: Callable[..., Any] | None,
    *,
    composition: str,
    cost: str,
    state: str,
    clock: str,
    example: str,
    summary: str,
) -> None:
    """Add an entry to the catalog. `parameters`: `name:kind` words, `?` after the kind of an optional one."""
    words = (word.split(":") for word in parameters.split())
    parsed = tuple(WindowParameter(word, kind.rstrip("?"), kind.endswith("?")) for word, kind in words)  # type: ignore[arg-type]
    _windows[name] = WindowSpec(
        name, namespace, role, parsed, make, composition, cost, state, clock, example, summary
    )


def _flags(flags: frozenset[str], start: Start) -> dict[str, Any]:
    return {"force": "FORCE_UPDATE" in flags, "start_ms": start.now_ms if "START_EAGER" in flags else None}


# --- windows that let events in at once ---------------------------------------------------------------------

register_window(
    "length",
    "win",
    "retain",
    "size:size",
    lambda start, size: Newest(size),
    composition="Retain(count n)",
    cost="O(1)",
    state="n events",
    clock="none",
    example="E#length(5)",
    summary="the newest n events",
)
register_window(
    "time",
    "win",
    "retain",
    "period:period",
    lambda start, period: Lifetime(period, start.zone),
    composition="Retain(deadline arrival + d)",
    cost="O(1)",
    state="the events of d",
    clock="processing",
    example="E#time(10 sec)",
    summary="the events of the last d",
)
register_window(
    "ext_timed",
    "win",
    "retain",
    "timestamp:value period:period",
    lambda start, timestamp, period: DataClock(timestamp.nodes, timestamp.of, period, start.zone),
    composition="Retain(data clock ts, d)",
    cost="O(1) amortised",
    state="the events of d",
    clock="the events' own",
    example="E#ext_timed(ts, 10 sec)",
    summary="the last d by the events' own time",
)
register_window(
    "time_accum",
    "win",
    "retain",
    "period:period",
    lambda start, period: Gap(period, start.zone),
    composition="Retain(gap d)",
    cost="O(1)",
    state="the events since the last gap",
    clock="processing",
    example="E#time_accum(10 sec)",
    summary="everything until nothing arrives for d",
)
register_window(
    "keepall",
    "win",
    "retain",
    "",
    lambda start: Forever(),
    composition="Retain(never)",
    cost="O(1)",
    state="all events",
    clock="none",
    example="E#keepall",
    summary="everything",
)
register_window(
    "firstlength",
    "win",
    "retain",
    "size:size",
    lambda start, size: FirstCount(size),
    composition="Retain(admission first n)",
    cost="O(1)",
    state="n events",
    clock="none",
    example="E#firstlength(5)",
    summary="the first n events",
)
register_window(
    "firsttime",
    "win",
    "retain",
    "period:period",
    lambda start, period: FirstUntil(period.add(start.now_ms, start.zone)),
    composition="Retain(admission until start + d)",
    cost="O(1)",
    state="the events of the first d",
    clock="processing",
    example="E#firsttime(10 sec)",
    summary="what arrives within d of the start",
)
register_window(
    "firstevent",
    "std",
    "retain",
    "",
    lambda start: FirstCount(1),
    composition="Retain(admission first 1)",
    cost="O(1)",
    state="1 event",
    clock="none",
    example="E#firstevent",
    summary="the very first event",
)
register_window(
    "lastevent",
    "std",
    "retain",
    "",
    lambda start: Newest(1),
    composition="Retain(count 1)",
    cost="O(1)",
    state="1 event",
    clock="none",
    example="E#lastevent",
    summary="the last event",
)
register_window(
    "unique",
    "std",
    "retain",
    "keys:keys",
    lambda start, keys: LatestPerKey(keys.nodes, keys.of),
    composition="Retain(replace by k)",
    cost="O(1)",
    state="1 event per key",
    clock="none",
    example="E#unique(k)",
    summary="the last event per key",
)
register_window(
    "firstunique",
    "std",
    "retain",
    "keys:keys",
    lambda start, keys: FirstPerKey(keys.nodes, keys.of),
    composition="Retain(admission first per k)",
    cost="O(1)",
    state="1 event per key",
    clock="none",
    example="E#firstunique(k)",
    summary="the first event per key",
)
register_window(
    "sort",
    "ext",
    "retain",
    "size:size criteria:criteria",
    lambda start, size, criteria: Ranked(size, criteria),
    composition="Retain(rank n by criteria)",
    cost="O(log n)",
    state="n events",
    clock="none",
    example="E#sort(10, price desc)",
    summary="the first n in sort order",
)
register_window(
    "rank",
    "ext",
    "retain",
    "keys:keys size:size criteria:criteria",
    lambda start, keys, size, criteria: RankedPerKey(size, criteria, keys.of),
    composition="Retain(rank n by criteria + replace by k)",
    cost="O(log n)",
    state="n events",
    clock="none",
    example="E#rank(k, 10, price desc)",
    summary="the first n among the last per key",
)
register_window(
    "time_order",
    "ext",
    "retain",
    "timestamp:value period:period",
    lambda start, timestamp, period: Scheduled(timestamp.of, period, start.zone),
    composition="Retain(deadline ts + d, ordered)",
    cost="O(log n)",
    state="the events of d",
    clock="processing",
    example="E#time_order(ts, 10 sec)",
    summary="events put in order of their own time, held for d",
)
register_window(
    "timetolive",
    "ext",
    "retain",
    "timestamp:value",
    lambda start, timestamp: Scheduled(timestamp.of, None, start.zone),
    composition="Retain(deadline ts, ordered)",
    cost="O(log n)",
    state="the living events",
    clock="processing",
    example="E#timetolive(ts)",
    summary="events until their own time",
)
register_window(
    "expr",
    "win",
    "retain",
    "predicate:predicate",
    lambda start, predicate: WhileTrue(predicate),
    composition="Retain(while predicate of the oldest)",
    cost="O(1) amortised + predicate",
    state="what the predicate keeps",
    clock="none",
    example="E#expr(sum(price) < 1000)",
    summary="the newest for which the predicate holds",
)

# --- windows that hold events back and release them together ------------------------------------------------

register_window(
    "length_batch",
    "win",
    "batch",
    "size:size",
    lambda start, size: AfterCount(size),
    composition="Gate(count n); Retain(generation)",
    cost="O(1) amortised",
    state="2n events",
    clock="none",
    example="E#length_batch(5)",
    summary="groups of n",
)
register_window(
    "time_batch",
    "win",
    "batch",
    "period:period reference:reference? flags:flags?",
    lambda start, period, reference, flags: Every(
        period, start.zone, reference_ms=reference, **_flags(flags, start)
    ),
    composition="Gate(every d, origin first event | reference | start); Retain(generation)",
    cost="O(1)",
    state="the events of 2d",
    clock="processing",
    example='E#time_batch(10 sec, 5000L, "FORCE_UPDATE")',
    summary="what came in each d",
)
register_window(
    "time_length_batch",
    "win",
    "batch",
    "period:period size:size flags:flags?",
    lambda start, period, size, flags: CountOrSince(period, start.zone, size, **_flags(flags, start)),
    composition="Gate(first of: d since release, n); Retain(generation)",
    cost="O(1)",
    state="2n events",
    clock="processing",
    example="E#time_length_batch(10 sec, 100)",
    summary="n events or what came in d, whichever is first",
)
register_window(
    "ext_timed_batch",
    "win",
    "batch",
    "timestamp:value period:period reference:reference?",
    lambda start, timestamp, period, reference: DataBoundary(timestamp.of, period, start.zone, reference),
    composition="Gate(data boundary ts, d); Retain(generation)",
    cost="O(1)",
    state="the events of 2d",
    clock="the events' own",
    example="E#ext_timed_batch(ts, 10 sec)",
    summary="what came in each d of the events' own time",
)
register_window(
    "expr_batch",
    "win",
    "batch",
    "predicate:predicate include:include?",
    lambda start, predicate, include: WhenTrue(predicate, True if include is None else include),
    composition="Gate(when predicate); Retain(generation)",
    cost="O(1) + predicate",
    state="2 batches",
    clock="none",
    example="E#expr_batch(newest_event.k != oldest_event.k, false)",
    summary="a batch when the predicate becomes true",
)

# --- per key ------------------------------------------------------------------------------------------------

register_window("groupwin", "std", "group", "keys:keys", None,
        composition="Key(k, window)", cost="+ hash", state="a window per key", clock="that of the window",
        example="E#groupwin(k)#length(5)", summary="a window per key")  # fmt: skip
register_window("merge", "std", "merge", "keys:keys", None,
        composition="end of Key", cost="O(1)", state="none", clock="none",
        example="E#groupwin(k)#length(5)#merge(k)#uni(v)", summary="the end of the grouped part")  # fmt: skip


# --- derived-value windows ----------------------------------------------------------------------------------

DERIVED_COLUMNS: dict[str, tuple[str, ...]] = {
    "size": ("size",),
    "uni": ("datapoints", "total", "average", "variance", "stddev", "stddevpa"),
    "linest": (
        "slope", "YIntercept", "XAverage", "XStandardDeviationPop", "XStandardDeviationSample", "XSum", "XVariance",
        "YAverage", "YStandardDeviationPop", "YStandardDeviationSample", "YSum", "YVariance", "dataPoints", "n", "sumX",
        "sumXSq", "sumXY", "sumY", "sumYSq",
    ),
    "correl": ("correlation",),
    "weighted_avg": ("average",),
}  # fmt: skip
"""The properties each derived-value window posts."""


def _statistic(name: str) -> Callable[[Start], Any]:
    def make(start: Start) -> Any:
        from sql.aggregates import bivariate

        return getattr(bivariate, name)()

    return make


for _name, _parameters, _make, _example, _summary in (
    ("size", "extras:extras?", lambda start: Size(), "E#time(1 min)#size", "the number of events"),
    ("uni", "x:value extras:extras?", _statistic("Univariate"), "E#length(10)#uni(price)", "univariate statistics"),
    ("linest", "x:value y:value extras:extras?", _statistic("Regression"), "E#length(10)#linest(x, y)", "regression"),
    ("correl", "x:value y:value extras:extras?", _statistic("Correlation"), "E#length(10)#correl(x, y)", "correlation"),
    ("weighted_avg", "x:value w:value extras:extras?", _statistic("WeightedMean"),
     "E#time(3 sec)#weighted_avg(price, volume)", "weighted average"),
):  # fmt: skip
    register_window(_name, "std" if _name == "size" else "stat", "derived", _parameters, _make,
            composition="Agg, posting the changed row", cost="O(1)", state="a few numbers", clock="none",
            example=_example, summary=_summary)  # fmt: skip
