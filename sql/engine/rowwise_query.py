"""A running rule without a window: one row per event that passes, or none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Any

from sql.algebra.derived.analytic import analytic_stage
from sql.compiler.rowwise_text import PushInto, RowwiseText
from sql.compiler.shared_code import Environment, SharedCode
from sql.emission import Emission, Row, singles
from sql.engine.families import At, Family, FamilyKind
from sql.engine.query import Running, RunningQuery, Stateful
from sql.engine.time_stamps import time_stamp
from sql.plan.logical import Plan


class Rowwise(RunningQuery, Running):
    """Filter and project.

    `push` takes events of one instant, `push_timed` events with their own time stamps, in order. In event
    time results and errors come out in the order in which they happen; else the errors of a push follow its
    results.
    """

    def __init__(self, plan: Plan, env: Environment) -> None:
        super().__init__(env.name, plan, env.now_ms)
        self.shape = shape = env.shape
        code = SharedCode(env, plan.options)
        self.context, self.warnings = code.context, code.warnings
        self.is_timed = plan.timestamp is not None
        self.functions = code.function_set(text=plan.text)
        self.analytic = analytic_stage(plan, self.functions)
        self.text = RowwiseText(plan, env.catalog, shape, self.functions, self.analytic)
        self.code = self.text.push(env.name, self.fail)
        self.events = self.code["push"]
        self.failed = 0
        """The number of events of its family's loop that failed, since the filter index last read it."""

    # --- driving --------------------------------------------------------------------------------------------

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """Events of one instant."""
        out: list[Emission] = []
        self.push_into(stream, rows, now_ms, out)
        return out

    def push_into(self, stream: str, rows: Sequence[Any], at: At, out: list[Emission]) -> Sequence[str]:
        if not isinstance(at, int):
            out += self.push_timed(stream, rows, at)
            return ()
        self.now_ms = self.context.now_ms = at
        made: list[Row] = []
        self.counts["events_in"] += len(rows)
        self.events(rows, at, made)
        if made:
            self.counts["rows_out"] += len(made)
            out.append(singles(self.name, at, made))
        if self.errors:
            out += self.errors
            self.errors.clear()
        return ()

    def again(self, row: object, now_ms: int, out: list[Emission]) -> None:
        """An event that failed in the family's loop, which has counted it."""
        self.counts["events_in"] -= 1
        self.push_into("", (row,), now_ms, out)
        self.failed += 1

    def push_timed(self, stream: str, rows: Sequence[Any], times: Sequence[int]) -> list[Emission]:
        self.counts["events_in"] += len(rows)
        errors = self.counts["errors"]
        self.events(rows, times, self.out)
        self.now_ms = times[-1]
        self.counts["rows_out"] += len(self.out) - (self.counts["errors"] - errors)
        out, self.out = self.out, []
        return out

    def advance(self, now_ms: int) -> list[Emission]:
        """Time changes nothing."""
        self.now_ms = max(self.now_ms, now_ms)
        return []

    def fail(self, row: object, error: BaseException) -> None:
        """An event could not be evaluated: counted, and an emission of its own."""
        at_ms, errors = self.now_ms, self.errors
        if self.is_timed:
            at_ms, errors = (
                time_stamp(self.plan, self.plan.sources[0].stream, row, self.context.zone),
                self.out,
            )
        errors.append(self.error_of(row, str(self.functions.failure(error, self.code)), at_ms))

    # --- state ----------------------------------------------------------------------------------------------

    def retained(self) -> int:
        return 0

    def counters(self) -> dict[str, int]:
        return {**self.counts, "division_by_zero": self.warnings.division_by_zero}

    @property
    def kept(self) -> dict[str, Stateful | None]:
        return {"analytic": self.analytic}

    def snapshot(self) -> dict[str, Any]:
        """The state as plain data: counters, and what analytic functions remember."""
        return {**self.head(), "start": self.context.start_ms}

    def restore(self, snapshot: dict[str, Any]) -> None:
        self.restore_head(snapshot)
        self.context.start_ms = snapshot["start"]


def row_family_of(query: Rowwise) -> FamilyKind[Rowwise] | None:
    """The family of all rules that differ from this one in name and first condition only."""
    found = query.text.family if query.plan.emits_as_made else None
    if found is None:
        return None
    signature, compiled, is_open = found
    return FamilyKind(signature, lambda: RowFamily(compiled(), is_open))


class RowFamily(Family[Rowwise, Rowwise]):
    """Rules of one row per event. `push_into` is the loop; `is_open`: whether every event it gets comes out,
    because there is no further condition."""

    def __init__(self, push_into: PushInto, is_open: bool) -> None:
        super().__init__()
        self.push_into = push_into
        self.is_open = is_open
        self.given: Counter[str] = Counter()
        """Emissions by rule since the last reconciling."""

    def given_for(self, query: Rowwise) -> Rowwise:
        return query

    def run(self, given: list[Rowwise], rows: Sequence[Any], at: At, out: list[Emission]) -> None:
        assert isinstance(at, int)
        before = len(out)
        failed = self.push_into(rows, given, at, out)
        if not self.is_open:
            self.given.update([emission.rule for emission in islice(out, before, None)])
        for query, row in failed:
            query.again(row, at, out)

    def reconcile(self) -> dict[str, int]:
        met = {query.name: self.met.pop(query, 0) for query in self.queries}
        for query in self.queries:
            emitted = met[query.name] - query.failed if self.is_open else self.given.pop(query.name, 0)
            query.counts["rows_out"] += emitted
            query.failed = 0
        return met
