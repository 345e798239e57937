"""EPL's batch windows: events are held back, and posted together."""

from __future__ import annotations

from dataclasses import dataclass, field

from sql.plan.clauses import WindowPlan
from tests.reference.expressions import Place, evaluate
from tests.reference.members import Delta, period_ms, satisfied, value
from tests.reference.rows import Event

BATCHES = ("length_batch", "time_batch", "time_length_batch", "ext_timed_batch", "expr_batch")


@dataclass
class Batch:
    """Events held back and posted together; what a post brought in leaves with the next one."""

    window: WindowPlan
    start_ms: int
    held: list[Event] = field(default_factory=list)
    posted: list[Event] = field(default_factory=list)
    last_post_ms: int | None = None
    began_ms: int | None = None
    """When the interval of time_length_batch began: with its first event, whatever has become of that, or
    with the post before."""
    first: Event | None = None

    def __post_init__(self) -> None:
        arguments = self.window.arguments
        flags = arguments.get("flags", frozenset())
        self.eager = "START_EAGER" in flags
        self.force = self.eager or "FORCE_UPDATE" in flags
        self.length_ms = period_ms(arguments["period"]) if "period" in arguments else 0
        given = arguments.get("reference")
        self.reference_ms = None if given is None else evaluate(given, Place())
        self.began_ms = self.start_ms if self.eager else None

    def insert(self, event: Event, now: int) -> Delta | None:
        """An event arrives; the post it causes."""
        arguments = self.window.arguments
        self.first = self.first or event
        if self.began_ms is None or now >= self.began_ms + self.length_ms:
            self.began_ms = now
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
                    if self.held or self.posted:
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
        self.held, self.posted = [] if then is None else [then], out.inserted
        self.last_post_ms = self.began_ms = now
        return out

    def due_ms(self) -> int | None:
        """When time alone posts next: not at all while there is nothing to post, unless forced."""
        started = self.eager or self.first is not None
        if not self.length_ms or not started or not (self.held or self.posted or self.force):
            return None
        # Counting goes on from the last post, which may be late, or from the first event behind it.
        first = self.held[0].time_ms if self.held and not self.eager else self.start_ms
        since = first if self.last_post_ms is None else max(first, self.last_post_ms)
        match self.window.name:
            case "time_batch":
                reference = self.reference_ms
                if reference is None:
                    reference = self.start_ms if self.eager or not self.first else self.first.time_ms
                return grid_after(since, reference, self.length_ms)
            case "time_length_batch":
                return None if self.began_ms is None else self.began_ms + self.length_ms
        return None

    def advance(self, now: int) -> Delta | None:
        due = self.due_ms()
        return self.post(now) if due is not None and due <= now else None


def grid_after(t_ms: int, reference_ms: int, length_ms: int) -> int:
    """The first point of reference + k * length after an instant; k may be negative."""
    return t_ms + length_ms - (t_ms - reference_ms) % length_ms
