"""One of EPL's windows (epl.md sections 2 and 3): who is admitted, who is pushed out by an arrival, who
leaves with time. Every question is answered by a loop over the list of the events held."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cmp_to_key
from typing import Any, NamedTuple

from sql.plan.bound import Bound, Slot
from sql.plan.clauses import Criterion, PeriodArgument, PredicatePlan, WindowPlan
from sql.types import order_key
from tests.reference.expressions import Place, evaluate
from tests.reference.rows import Event, aggregate, key

UNIT_MS = {"millisecond": 1, "second": 1000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000}


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
