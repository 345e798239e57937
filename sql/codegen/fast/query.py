"""What all fast queries share: errors and counters as in the engine, time stamps, snapshots, the generated source."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from math import inf
from typing import Any

from sql.codegen.expressions import ExpressionWriter, Names
from sql.codegen.fast.reader import LocalReader, LoopWriter
from sql.codegen.fast.source import Generated, SourceWriter
from sql.codegen.functions import DATA_ERRORS
from sql.errors import CorruptState, positioned
from sql.rows import as_dict
from sql.runtime.emission import Emission
from sql.runtime.query import Query
from sql.runtime.stage import time_stamp
from sql.windows.event import Event

PATH = "fast"

LOCALS = frozenset((
    "admit", "at", "bad", "changed", "count", "due", "e", "entries", "entry", "error", "events", "g", "get", "gone",
    "group", "groups", "h", "is_full", "kept", "key", "left", "looks", "members", "n", "now_ms", "odd", "old",
    "order", "out", "passes", "past", "room", "rows", "serial", "stamp", "stamps", "table", "tick", "times",
    "touched", "unique", "window",
))  # fmt: skip
"""What the loops call their locals: a function or a constant of the rule gets another name."""


class FastQuery(Query):
    """A query whose events go through one generated loop.

    `push` takes events of one instant, `push_timed` events with their own time stamps, in order. In event time
    results and errors come out in the order in which they happen; else the errors of a push follow its results, as in
    the engine.
    """

    takes_times = True

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.out: list[Emission] = []
        self.is_timed = self.plan.timestamp is not None
        self._failures = self.out if self.is_timed else self.errors
        self.code = self._generate()

    # --- code ---------------------------------------------------------------------------------------------------------

    @abstractmethod
    def _write(self, writer: SourceWriter, names: Names) -> None:
        """Write the functions of this query."""

    def _generate(self) -> Generated:
        writer, names = SourceWriter(), self.functions.names
        names.reserve(LOCALS)
        names.bound |= {
            "DATA_ERRORS": DATA_ERRORS, "Emission": Emission, "rule": self.name, "fail": self.fail, "q": self,
            "INFINITY": inf,
        }  # fmt: skip
        self._write(writer, names)
        return Generated(writer, names.bound)

    def loop_writer(self, source: SourceWriter, slots: dict[Any, Any]) -> LoopWriter:
        """A writer for a loop whose operators' values are read as `slots` says."""
        reader = LocalReader(self.functions.names, self.catalog, self.shape, slots)
        expressions = ExpressionWriter(reader, self.functions.names, self.warnings, self.context)
        return LoopWriter(source, reader, expressions)

    @property
    def source(self) -> str:
        """The generated code as a person reads it."""
        sql = "\n".join(f"#     {line}" for line in self.plan.text.strip().splitlines())
        return f"# rule {self.name}\n{sql}\n\n{self.code.text}"

    # --- driving ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def push_timed(self, rows: Sequence[Any], times: Sequence[int]) -> list[Emission]:
        """Events with their time stamps, which never decrease; what is due before each is done before it."""

    def step_to(self, until_ms: int) -> None:
        """Do what is due up to `until_ms`, in turn; results go to `out`."""
        deadline = self.next_deadline()
        if deadline is not None and deadline <= until_ms:
            self.now_ms = max(self.now_ms, until_ms)
            self.advance_to(until_ms)

    def advance_to(self, now_ms: int) -> None:
        """Do what is due at or before `now_ms`, each window at its own instant; results go to `out`."""

    def advance(self, now_ms: int) -> list[Emission]:
        self.now_ms = max(self.now_ms, now_ms)
        self.advance_to(now_ms)
        return self.take()

    def next_deadline(self) -> int | None:
        return None

    def take(self) -> list[Emission]:
        """The emissions since the last call, errors last."""
        out = self.out.copy()
        self.out.clear()
        if self.errors:
            out += self.errors
            self.errors.clear()
        return out

    # --- errors -------------------------------------------------------------------------------------------------------

    def fail(self, row: Any, error: BaseException) -> None:
        """An event could not be evaluated: counted, and an emission of its own."""
        self.counts["errors"] += 1
        at_ms = self.time_of(row) if self.is_timed else self.now_ms
        self._failures.append(self.failure(row, error, at_ms))

    def failure(self, row: Any, error: BaseException, at_ms: int, code: Generated | None = None) -> Emission:
        """The emission of an event that could not be evaluated, by this query or by another's equal `code`."""
        line = (code or self.code).line_of(error)
        span = None if line is None else self.code.spans.get(line)
        if span is not None:
            error = positioned(error, span, self.plan.text)
        return Emission(self.name, at_ms, "error", [{} if row is None else dict(as_dict(row))], (), str(error))

    def time_of(self, row: Any) -> int:
        """The instant of an event in event time."""
        return time_stamp(self.plan, self.plan.sources[0].stream, row, self.context.zone)

    # --- state --------------------------------------------------------------------------------------------------------

    def held(self) -> Iterable[Event]:
        return ()

    def snapshot(self) -> dict[str, Any]:
        return {**super().snapshot(), "path": PATH}

    def restore(self, snapshot: dict[str, Any]) -> None:
        if snapshot.get("path") != PATH:
            raise CorruptState("the snapshot is of the operators, not of the fast path")
        super().restore(snapshot)


def runs(times: Sequence[int], first: int, end_ms: int) -> int:
    """Where the run that starts at `first` and ends before the instant `end_ms` ends."""
    return bisect_left(times, end_ms, first)
