"""EPL's windows (epl.md sections 2 and 3): who is admitted, who is pushed out by an
arrival, who leaves with time.

A relation that lets events in at once is a list of the events it holds, and every question is answered by a
loop over that list. `Batch` holds events back instead and posts them together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cmp_to_key
from typing import Any, NamedTuple, Protocol

from sql.plan.bound import Bound, Slot
from sql.plan.clauses import Criterion, PeriodArgument, PredicatePlan, SourcePlan, WindowPlan
from sql.types import order_key
from tests.reference.expressions import Place, evaluate
from tests.reference.rows import Event, aggregate, key

UNIT_MS = {"millisecond": 1, "second": 1000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000}
BATCHES = ("length_batch", "time_batch", "time_length_batch", "ext_timed_batch", "expr_batch")


class Delta(NamedTuple):
    """One partial update: what entered and what left. `forced`: posted although it may be empty."""

    inserted: list[Event]
    removed: list[Event]
    forced: bool = False


def period_ms(argument: PeriodArgument) -> int:
    """A fixed length of time; calendar periods have their own tests."""
    if any(unit not in UNIT_MS for _, unit in argument.parts):
        raise NotImplementedError("the reference evaluator has no calendar")
    return round(sum(evaluate(amount, Place()) * UNIT_MS[unit] for amount, unit in argument.parts))


def value(node: Bound, event: Event) -> Any:
    return evaluate(node, Place((event.row,)))


@dataclass
class Retain:
    """One window that lets events in at once. Times: what is due at an instant leaves before
    that instant's events."""

    window: WindowPlan
    start_ms: int

    def __post_init__(self) -> None:
        arguments = self.window.arguments
        self.size = evaluate(arguments["size"], Place()) if "size" in arguments else 0
        self.length_ms = period_ms(arguments["period"]) if "period" in arguments else 0

    def admits(self, held: list[Event], event: Event, now: int) -> bool:
        """First-type windows refuse; a refused event touches no window and is in neither stream."""
        match self.window.name:
            case "firstlength":
                return len(held) < self.size
            case "firstevent":
                return not held
            case "firsttime":
                return now < self.start_ms + self.length_ms
            case "firstunique":
                keys = self.window.arguments["keys"]
                return all(key(keys, other) != key(keys, event) for other in held)
        return True

    def pushed_out(self, held: list[Event], event: Event, now: int) -> list[Event]:
        """What leaves because of the arriving event, which is the last of `held`; perhaps itself."""
        arguments = self.window.arguments
        match self.window.name:
            case "length":
                return held[: max(0, len(held) - self.size)]
            case "lastevent":
                return held[:-1]
            case "unique":
                return [
                    other
                    for other in held[:-1]
                    if key(arguments["keys"], other) == key(arguments["keys"], event)
                ]
            case "sort":
                return ranked(held, arguments["criteria"])[self.size :]
            case "rank":
                same = [
                    other
                    for other in held[:-1]
                    if key(arguments["keys"], other) == key(arguments["keys"], event)
                ]
                # Reference: an event whose only criterion is NULL does not count as its key's last one.
                only = arguments["criteria"][0].value if len(arguments["criteria"]) == 1 else None
                older = [other for other in same if only is None or value(only, other) is not None]
                rest = [other for other in held if other not in older]
                return older + ranked(rest, arguments["criteria"])[self.size :]
            case "ext_timed":
                return self._outlived(held[:-1], value(arguments["timestamp"], event) - self.length_ms)
            case "time_order" | "timetolive":
                return self.expired(held, now)
            case "expr":
                return expelled(arguments["predicate"], held)
        return []

    def _outlived(self, held: list[Event], edge_ms: int) -> list[Event]:
        """From the head only: an older event behind a younger head leaves with it."""
        out = []
        for event in held:
            if value(self.window.arguments["timestamp"], event) > edge_ms:
                break
            out.append(event)
        return out

    def leave_ms(self, held: list[Event], event: Event) -> int | None:
        """When a held event leaves by time alone."""
        match self.window.name:
            case "time":
                return event.time_ms + self.length_ms
            case "time_accum":
                return held[-1].time_ms + self.length_ms
            case "time_order" | "timetolive":
                return int(value(self.window.arguments["timestamp"], event)) + self.length_ms
        return None

    def expired(self, held: list[Event], now: int) -> list[Event]:
        """What leaves at or before `now`, in order of leaving."""
        times = [(leave, event) for event in held if (leave := self.leave_ms(held, event)) is not None]
        return [event for leave, event in sorted(times, key=lambda pair: pair[0]) if leave <= now]


def ranked(events: list[Event], criteria: tuple[Criterion, ...]) -> list[Event]:
    """In sort order, NULL lowest, of tied events the newest first."""

    def compare(a: Event, b: Event) -> int:
        for item in criteria:
            left, right = order_key(value(item.value, a)), order_key(value(item.value, b))
            if left != right:
                return -1 if (left < right) != item.descending else 1
        return b.seq - a.seq

    return sorted(events, key=cmp_to_key(compare))


def satisfied(predicate: PredicatePlan, event: Event, content: list[Event], expired: int) -> bool:
    """The predicate of an expression window for one event, over a content (epl.md 2.4)."""
    oldest, newest = content[0], content[-1]
    builtins = {
        "current_count": len(content),
        "expired_count": expired,
        "view_reference": content,
        "oldest_timestamp": oldest.time_ms,
        "newest_timestamp": newest.time_ms,
        "oldest_event": oldest.row,
        "newest_event": newest.row,
    }

    def slot(node: Slot) -> Any:
        return (
            builtins[node.key]
            if node.kind == "builtin"
            else aggregate(predicate.aggregates[node.key], content)
        )

    return evaluate(predicate.test, Place((event.row,), slot)) is True


def expelled(predicate: PredicatePlan, held: list[Event]) -> list[Event]:
    """expr: the oldest leave while the predicate is not TRUE for the oldest."""
    gone = 0
    while gone < len(held) and not satisfied(predicate, held[gone], held[gone:], gone):
        gone += 1
    return held[:gone]


@dataclass
class Batch:
    """Events held back and posted together; what a post brought in leaves with the next one."""

    window: WindowPlan
    start_ms: int
    held: list[Event] = field(default_factory=list)
    posted: list[Event] = field(default_factory=list)
    last_post_ms: int | None = None
    first: Event | None = None

    def __post_init__(self) -> None:
        arguments = self.window.arguments
        flags = arguments.get("flags", frozenset())
        self.eager = "START_EAGER" in flags
        self.force = self.eager or "FORCE_UPDATE" in flags
        self.length_ms = period_ms(arguments["period"]) if "period" in arguments else 0
        given = arguments.get("reference")
        self.reference_ms = None if given is None else evaluate(given, Place())

    def insert(self, event: Event, now: int) -> Delta | None:
        """An event arrives; the post it causes."""
        arguments = self.window.arguments
        self.first = self.first or event
        match self.window.name:
            case "length_batch" | "time_length_batch":
                self.held.append(event)
                return self.post(now) if len(self.held) >= evaluate(arguments["size"], Place()) else None
            case "ext_timed_batch" if (
                self.held and value(arguments["timestamp"], event) >= self._data_boundary()
            ):
                return self.post(now, then=event)
            case "expr_batch" if satisfied(arguments["predicate"], event, [*self.held, event], 0):
                if arguments["include"] is not None and evaluate(arguments["include"], Place()) is False:
                    if self.held:
                        return self.post(now, then=event)
                    self.held.append(event)
                    return None
                self.held.append(event)
                return self.post(now)
        self.held.append(event)
        return None

    def _data_boundary(self) -> int:
        """ext_timed_batch: the first point of the grid after the batch's first event, by
        the events' own time."""
        timestamp = self.window.arguments["timestamp"]
        assert self.first is not None
        reference = value(timestamp, self.first) if self.reference_ms is None else self.reference_ms
        return grid_after(value(timestamp, self.held[0]), reference, self.length_ms)

    def post(self, now: int, then: Event | None = None) -> Delta:
        out = Delta(self.held, self.posted, self.force)
        self.held, self.posted, self.last_post_ms = [] if then is None else [then], out.inserted, now
        return out

    def due_ms(self) -> int | None:
        """When time alone posts next: not at all while there is nothing to post, unless forced."""
        started = self.eager or self.first is not None
        if not self.length_ms or not started or not (self.held or self.posted or self.force):
            return None
        # Counting goes on from the last post; after an empty interval it begins anew with the first event.
        first = self.held[0].time_ms if self.held and not self.eager else self.start_ms
        if (since := self.last_post_ms) is None or first >= since + self.length_ms:
            since = first
        match self.window.name:
            case "time_batch":
                reference = self.reference_ms
                if reference is None:
                    reference = self.start_ms if self.eager or not self.first else self.first.time_ms
                return grid_after(since, reference, self.length_ms)
            case "time_length_batch":
                return since + self.length_ms
        return None

    def advance(self, now: int) -> Delta | None:
        due = self.due_ms()
        return self.post(now) if due is not None and due <= now else None


def grid_after(t_ms: int, reference_ms: int, length_ms: int) -> int:
    """The first point of reference + k * length after an instant; k may be negative."""
    return t_ms + length_ms - (t_ms - reference_ms) % length_ms


class Relation(Protocol):
    """What stands between a stream and the rows of a statement."""

    def insert(self, event: Event, now: int) -> list[Delta]: ...
    def advance(self, now: int) -> list[Delta]: ...
    def due_ms(self) -> int | None: ...
    def content(self) -> list[Event]: ...
    def remembers(self) -> bool: ...


class Current:
    """No window: an event is there for its own step only."""

    def insert(self, event: Event, now: int) -> list[Delta]:
        return [Delta([event], [])]

    def advance(self, now: int) -> list[Delta]:
        return []

    def due_ms(self) -> int | None:
        return None

    def content(self) -> list[Event]:
        return []

    def remembers(self) -> bool:
        return False


class Intersection:
    """An event stays while all members hold it; they decide on an arrival before any
    feedback. One may be a batch."""

    def __init__(self, windows: tuple[WindowPlan, ...], start_ms: int) -> None:
        self.members = [Retain(window, start_ms) for window in windows if window.name not in BATCHES]
        self.batch = next((Batch(window, start_ms) for window in windows if window.name in BATCHES), None)
        self.held: list[Event] = []

    def admits(self, event: Event, now: int) -> bool:
        return all(member.admits(self.held, event, now) for member in self.members)

    def insert(self, event: Event, now: int) -> list[Delta]:
        if not self.admits(event, now):
            return []
        self.held = [*self.held, event]
        out = once(leaver for member in self.members for leaver in member.pushed_out(self.held, event, now))
        self.drop(out)
        if self.batch is None:
            return [Delta([event], out)]
        # What leaves a sibling leaves the forming batch silently; what is posted leaves the siblings.
        self.batch.held = [other for other in self.batch.held if other not in out]
        return self._posted(None if event in out else self.batch.insert(event, now))

    def advance(self, now: int) -> list[Delta]:
        out = once(leaver for member in self.members for leaver in member.expired(self.held, now))
        self.drop(out)
        if self.batch is None:
            return [Delta([], out)] if out else []
        self.batch.held = [other for other in self.batch.held if other not in out]
        return self._posted(self.batch.advance(now))

    def _posted(self, delta: Delta | None) -> list[Delta]:
        if delta is None or not (delta.inserted or delta.removed or delta.forced):
            return []
        self.drop(delta.inserted)
        return [delta]

    def drop(self, events: list[Event]) -> None:
        self.held = [event for event in self.held if event not in events]

    def due_ms(self) -> int | None:
        times = [member.leave_ms(self.held, event) for member in self.members for event in self.held]
        return earliest([*times, self.batch.due_ms() if self.batch else None])

    def content(self) -> list[Event]:
        return self.batch.held if self.batch else self.held

    def remembers(self) -> bool:
        """Whether it differs from a new one."""
        return bool(
            self.held or self.batch or any(member.window.name == "firsttime" for member in self.members)
        )


class Union:
    """An event stays while any member holds it; admitted if any admits."""

    def __init__(self, windows: tuple[WindowPlan, ...], start_ms: int) -> None:
        self.members = [Intersection((window,), start_ms) for window in windows]

    def insert(self, event: Event, now: int) -> list[Delta]:
        if not any(member.admits(event, now) for member in self.members):
            return []
        before = self.content()
        for member in self.members:
            member.insert(event, now)
        return [Delta([event], [other for other in [*before, event] if other not in self.content()])]

    def advance(self, now: int) -> list[Delta]:
        before = self.content()
        for member in self.members:
            member.advance(now)
        gone = [event for event in before if event not in self.content()]
        return [Delta([], gone)] if gone else []

    def due_ms(self) -> int | None:
        return earliest(member.due_ms() for member in self.members)

    def remembers(self) -> bool:
        return any(member.remembers() for member in self.members)

    def content(self) -> list[Event]:
        """In order of arrival; a batch member holds what it collects and what it posted last."""
        held = [event for member in self.members for event in member.held]
        held += [event for m in self.members if m.batch for event in (*m.batch.held, *m.batch.posted)]
        return sorted(once(held), key=lambda event: event.seq)


class PerKey:
    """groupwin: one relation per key, each posting its own updates; of one instant by
    due time, then by creation: that of `time` by the arrival of its oldest event.

    A relation that has become as good as new is dropped, and is created anew by its key's next event.
    """

    def __init__(self, source: SourcePlan, windows: tuple[WindowPlan, ...]) -> None:
        self.keys = source.windows[0].arguments["keys"]
        self.source, self.windows = source, windows
        self.relations: dict[Any, Relation] = {}

    def insert(self, event: Event, now: int) -> list[Delta]:
        name = key(self.keys, event)
        if name not in self.relations:
            self.relations[name] = combined(self.windows, self.source.union, now)
        return self._tidy(self.relations[name].insert(event, now))

    def advance(self, now: int) -> list[Delta]:
        due = [(at, each) for each in self.relations.values() if (at := each.due_ms()) is not None]
        by_arrival = [window.name for window in self.windows] == ["time"]
        due.sort(key=lambda pair: (pair[0], pair[1].content()[0].seq if by_arrival else 0))
        return self._tidy([delta for _, relation in due for delta in relation.advance(now)])

    def _tidy(self, deltas: list[Delta]) -> list[Delta]:
        self.relations = {name: relation for name, relation in self.relations.items() if relation.remembers()}
        return deltas

    def due_ms(self) -> int | None:
        return earliest(relation.due_ms() for relation in self.relations.values())

    def content(self) -> list[Event]:
        return [event for relation in self.relations.values() for event in relation.content()]

    def remembers(self) -> bool:
        return bool(self.relations)


def relation_of(source: SourcePlan, start_ms: int) -> Relation:
    """The windows of one source."""
    names = [window.name for window in source.windows]
    if (
        unknown := set(names) & {"size", "uni", "linest", "correl", "weighted_avg", "merge"}
        or source.reclaim_ms
    ):
        raise NotImplementedError(f"the reference evaluator has no {unknown}")
    if "groupwin" in names:
        return PerKey(source, source.windows[1:])
    return combined(source.windows, source.union, start_ms)


def combined(windows: tuple[WindowPlan, ...], union: bool, start_ms: int) -> Relation:
    if not windows:
        return Current()
    return Union(windows, start_ms) if union else Intersection(windows, start_ms)


def once(events: Any) -> list[Event]:
    """Each event once, at its first place."""
    return list(dict.fromkeys(events))


def earliest(times: Any) -> int | None:
    return min((time for time in times if time is not None), default=None)
