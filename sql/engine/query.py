"""Running queries as the engine, the stage of event time and the room of those that wait see them; their
counters, errors and emissions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Protocol

from sql.aggregates.plain_values import decode, encode
from sql.algebra.event import Delta, Event
from sql.compiler.shared_code import Environment
from sql.emission import Emission, Row, singles
from sql.engine.families import At
from sql.errors import CorruptState
from sql.plan.logical import Plan
from sql.rows import Shape, as_dict
from sql.types import Saved


class Running(ABC):
    """A query in processing or event time. What only some queries do has no effect here.

    steps_itself  it goes through due instants by itself: their bounds are nominal
    takes_lots    rows that another query gave out together enter it as one step
    """

    name: str
    plan: Plan
    now_ms: int
    counts: dict[str, int]
    began: Mapping[str, Any] = MappingProxyType({})
    """The values of the variables that its windows read when they began, as plain data."""
    steps_itself = False
    takes_lots = False

    @abstractmethod
    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """Events of one stream arrive, in order, at `now_ms`. Everything due by then has been done."""

    def push_timed(self, stream: str, rows: Sequence[Any], times: Sequence[int]) -> list[Emission]:
        """Events of one stream with their own instants, in order; what is due before each is done before
        it."""
        out: list[Emission] = []
        for row, at_ms in zip(rows, times, strict=True):
            out += self.step_to(at_ms)
            out += self.push(stream, [row], at_ms)
        return out

    def push_into(self, stream: str, rows: Sequence[Any], at: At, out: list[Emission]) -> Sequence[str]:
        """Take events, with the results added to those of other rules; the rules that may have a new
        deadline."""
        out += self.push(stream, rows, at) if isinstance(at, int) else self.push_timed(stream, rows, at)
        return (self.name,)

    def push_lot(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """Rows that another query gave out together arrive."""
        return self.push(stream, rows, now_ms)

    def arriving(self, stream: str, row: object, now_ms: int) -> None:
        """An event arrives: filters that read relations are evaluated before any statement acts on it."""

    def feed(self, changes: Mapping[str, Delta], now_ms: int) -> list[Emission]:
        """Named windows have changed, all of them before anything is computed from one."""
        return []

    def fill(self, *, posts: bool = False) -> list[Emission]:
        """Start from the present rows of named windows; what that gives where it is to be posted."""
        return []

    def advance(self, now_ms: int) -> list[Emission]:
        """Do what is due at or before `now_ms`."""
        return []

    def next_deadline(self) -> int | None:
        """The earliest instant at which `advance` has something to do."""
        return None

    def step_to(self, until_ms: int) -> list[Emission]:
        """Do what is due up to an instant, in turn."""
        out: list[Emission] = []
        while (deadline := self.next_deadline()) is not None and deadline <= until_ms:
            out += self.advance(until_ms if self.steps_itself else deadline)
        return out

    def flush(self, now_ms: int) -> list[Emission]:
        """The bounded source has ended."""
        return []

    def terminate(self, now_ms: int) -> list[Emission]:
        """The context partition of the instance ends: the output of `when terminated`. Windows that are open
        go with it."""
        return []

    def variable_changed(self, name: str, now_ms: int) -> None:
        """A variable has a new value; what that causes is posted at the next advance of time."""

    @abstractmethod
    def reject(self, row: object, why: str, now_ms: int) -> list[Emission]:
        """An event was refused before it came here: counted, and an emission of its own."""

    @abstractmethod
    def unseen(self, emissions: list[Emission]) -> list[Emission]:
        """Leave out results that come too late (`catchUp: skip`): they count as skipped, errors remain."""

    def read(self, now_ms: int) -> list[dict[str, Any]]:
        """The rows of the content between two steps; without a window there are none."""
        return []

    def retained(self) -> int | None:
        """The number of events held, or of which what they contributed is: a walk through all of them. None
        for a query that never holds one."""
        return None

    def counters(self) -> dict[str, int]:
        """The counters, read in a time that does not grow with the state."""
        return dict(self.counts)

    def snapshot(self) -> dict[str, Any]:
        """The whole state as plain JSON-able data."""
        return {}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Put a snapshot back into a query just made; CorruptState where it does not fit."""


SNAPSHOT_VERSION = 2
"""The version of stored states; states of another version are not restored."""


UNFIT = (LookupError, TypeError, ValueError, AttributeError)
"""The errors of reading a state that has another form."""


def put_back(query: Running, snapshot: dict[str, Any]) -> None:
    """Restore a query just made; CorruptState also for a snapshot whose form another version has written."""
    try:
        query.restore(snapshot)
    except UNFIT as error:
        reason = f"it has another form, perhaps that of another version of penstock ({error!r})"
        raise CorruptState(reason) from error


class Stateful(Protocol):
    """A part of a query that has a state."""

    def snapshot(self) -> Saved: ...
    def restore(self, state: Saved) -> None: ...


class RunningQuery:
    """Counters, errors and emissions of one query."""

    shape: Shape | None = None
    """How the columns of its events are read; None if there is nothing to read of them before it has them."""

    def __init__(self, name: str, plan: Plan, now_ms: int) -> None:
        self.name = name
        self.plan = plan
        self.now_ms = now_ms
        self.out: list[Emission] = []
        self.made: list[Row] = []
        """The rows that the compiled loop made of the present events, an emission each."""
        self.errors: list[Emission] = []
        self.counts = {"events_in": 0, "rows_out": 0, "errors": 0}
        self.seq = 0

    def new_event(self, row: object, time_ms: int) -> Event:
        """An event with the next number."""
        self.seq += 1
        return Event(row, time_ms, self.seq)

    # --- emissions ------------------------------------------------------------------------------------------

    def take(self) -> list[Emission]:
        """The emissions since the last call, errors last."""
        out, self.out = self.out, []
        if self.made:
            out.append(singles(self.name, self.now_ms, self.made))
            self.made = []
        self.counts["rows_out"] += sum([len(part.inserted) for part in out if part.kind == "rows"])
        if self.errors:
            out += self.errors
            self.errors = []
        return out

    def unseen(self, emissions: list[Emission]) -> list[Emission]:
        skipped = sum(len(emission.inserted) for emission in emissions if emission.kind == "rows")
        self.counts["rows_out"] -= skipped
        self.counts["rows_skipped"] = self.counts.get("rows_skipped", 0) + skipped
        return [emission for emission in emissions if emission.kind != "rows"]

    # --- errors ---------------------------------------------------------------------------------------------

    def error_of(self, row: object, why: str, at_ms: int) -> Emission:
        """Count an error; its emission."""
        self.counts["errors"] += 1
        return Emission(self.name, at_ms, "error", [] if row is None else [plain(row)], (), why)

    def report(self, row: object, why: object) -> None:
        """An event could not be evaluated: counted, and an emission of its own behind the rows."""
        self.errors.append(self.error_of(row, str(why), self.now_ms))

    def reject(self, row: object, why: str, now_ms: int) -> list[Emission]:
        self.counts["events_in"] += 1
        return [self.error_of(row, why, now_ms)]

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read the content, which changes nothing: its errors were reported when the events came."""
        reported, counted = len(self.errors), self.counts["errors"]
        yield
        del self.errors[reported:]
        self.counts["errors"] = counted

    # --- state ----------------------------------------------------------------------------------------------

    @property
    def kept(self) -> dict[str, Stateful | None]:
        """The parts with a state of their own, by their names in snapshots."""
        return {}

    def reported(self) -> dict[str, Any]:
        """The counters, and the errors that no emission has yet: those of its start, which starting it again
        reports once more."""
        counts = {"counts": dict(self.counts)}
        errors = [[each.at_ms, encode(each.inserted), each.error] for each in self.errors]
        return counts | {"errors": errors} if errors else counts

    def restore_reported(self, snapshot: dict[str, Any]) -> None:
        """Put them back; those of tables and variables are not in earlier states."""
        self.counts |= snapshot.get("counts", {})
        self.errors = [
            Emission(self.name, at_ms, "error", decode(rows), (), why)
            for at_ms, rows, why in snapshot.get("errors", ())
        ]

    def head(self) -> dict[str, Any]:
        """The part of a snapshot that all queries have."""
        return {
            "version": SNAPSHOT_VERSION,
            "fingerprint": self.plan.fingerprint,
            "now": self.now_ms,
            **self.reported(),
            **{name: None if part is None else part.snapshot() for name, part in self.kept.items()},
        }

    def restore_head(self, snapshot: dict[str, Any]) -> None:
        """Put that part back; CorruptState if the snapshot is none of this query."""
        if snapshot.get("version") != SNAPSHOT_VERSION:
            raise CorruptState(f"snapshot version {snapshot.get('version')!r} is not {SNAPSHOT_VERSION}")
        if snapshot.get("fingerprint") != self.plan.fingerprint:
            raise CorruptState("the snapshot is of another plan")
        self.now_ms = snapshot["now"]
        self.restore_reported(snapshot)
        for name, part in self.kept.items():
            if part is not None:
                part.restore(snapshot[name])


def plain(row: object) -> dict[str, Any]:
    """A row, or the sides of a joined row, as a dict for an error's emission."""
    if isinstance(row, tuple):
        present = [side for side in row if side is not None]
        if len(present) == 1:
            return plain(present[0])
        return {str(i): plain(side) for i, side in enumerate(row) if side is not None}
    if isinstance(row, list):
        return {str(i): plain(item) for i, item in enumerate(row)}
    return {} if row is None else dict(as_dict(row))


MakeInstance = Callable[[Environment], Running]
"""Makes an instance of a compiled statement."""


class QueryDecorator(Running):
    """A query behind something that holds its events back; what that does not change is the query's.

    Rows of another query wait one by one like all events. Filters see relations as they are when the event
    enters the query, not as it arrives.
    """

    def __init__(self, query: Running) -> None:
        self.query = query
        self.name = query.name
        self.plan = query.plan
        self.began = query.began

    def fill(self, *, posts: bool = False) -> list[Emission]:
        return self.query.fill(posts=posts)

    def feed(self, changes: Mapping[str, Delta], now_ms: int) -> list[Emission]:
        return self.query.feed(changes, now_ms)

    def reject(self, row: object, why: str, now_ms: int) -> list[Emission]:
        return self.query.reject(row, why, now_ms)

    def unseen(self, emissions: list[Emission]) -> list[Emission]:
        return self.query.unseen(emissions)

    def variable_changed(self, name: str, now_ms: int) -> None:
        self.query.variable_changed(name, now_ms)

    def retained(self) -> int | None:
        return self.query.retained()

    def read(self, now_ms: int) -> list[dict[str, Any]]:
        return self.query.read(now_ms)
