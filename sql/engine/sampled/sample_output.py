"""The output of a sampled rule: rows and errors of its samples, in order, and their counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sql.algebra.budget import Budget
from sql.algebra.event import Event
from sql.algebra.output.row_order import Spreads, in_order
from sql.algebra.sample.content import Sample
from sql.algebra.sample.sampled_rows import Bad, Made
from sql.codegen.source import Generated
from sql.emission import Emission, Out
from sql.engine.query import plain
from sql.engine.sampled.sampled_text import SampledState
from sql.errors import positioned


class SampleOutput:
    """The owner of the core of `query`, which tells it what is shown and what fails."""

    def __init__(self, query: SampledState, budget: Budget) -> None:
        code = query.of_plan
        self.query = query
        self.code = code
        self.budget = budget
        self.name, self.plan, self.is_timed = query.name, code.plan, code.is_timed
        self.counts, self.out, self.errors = query.counts, query.out, query.errors
        self.counts["windows_empty_skipped"] = 0
        self.spreads = Spreads(self.plan.spreads) if self.plan.spreads else None
        self.is_plain = not self.plan.orders_rows

    def shown(self, sample: Sample, start_ms: int, end_ms: int, trigger_ms: int) -> Sequence[Any]:
        """The window [start, end) is shown; its rows."""
        rows = self.make_rows(sample, start_ms, end_ms, trigger_ms)
        if self.is_timed and not self.query.core.is_stepping:
            self.done()
        return rows

    def make_rows(
        self, sample: Sample, start_ms: int, end_ms: int, trigger_ms: int, made: Made | None = None
    ) -> list[Any]:
        """The rows of a window, emitted; those that cannot be made are errors. `made`: rows that other rules
        have made of the same sample."""
        bad: Bad = []
        bounds = (start_ms, end_ms, trigger_ms)
        common = self.query.common
        rows = None if common is None or made is None else common.of(sample, made, *bounds)
        if rows is None:
            rows = self.code.sampled_rows.rows(sample, *bounds, bad)
        if not self.is_plain:
            outs = rows if self.plan.order_by else [Out(row) for row in rows]
            rows = in_order(outs, self.plan, self.code.row_limit, self.spreads)
        if rows:
            self.counts["rows_out"] += len(rows)
            self.out.append(Emission(self.name, trigger_ms, "rows", rows, (), None))
        for row, error in bad:
            self.counts["errors"] += 1
            self.errors.append(self.failure(row, error, trigger_ms, self.code.sampled_rows.code))
        return rows

    def failed(self, row: object, error: BaseException, at_ms: int) -> None:
        """An event could not be evaluated."""
        if self.query.analytic is not None:
            self.query.analytic.drop(row)
        self.fail(row, error, at_ms, self.code.core.made)

    def fail(self, row: object, error: BaseException, at_ms: int, code: Generated) -> None:
        """Count an error in generated text, and emit it."""
        self.counts["errors"] += 1
        failures = self.out if self.is_timed and not self.query.core.is_stepping else self.errors
        failures.append(self.failure(row, error, at_ms, code))

    def pair_failed(self, event: Event, error: BaseException) -> None:
        """Two rows could not be joined."""
        self.failed(event.row, error, self.query.now_ms)

    def failure(self, row: object, error: BaseException, at_ms: int, code: Generated) -> Emission:
        """The emission of what could not be evaluated by a generated text."""
        line = code.line_of(error)
        own = self.code.sampled_rows.code if code is self.code.sampled_rows.code else self.code.core.made
        span = None if line is None else own.spans.get(line)
        known = (
            self.code.functions.failure(error) if span is None else positioned(error, span, self.plan.text)
        )
        return Emission(self.name, at_ms, "error", [plain(row)], (), str(known))

    def skipped(self, windows: int) -> None:
        self.counts["windows_empty_skipped"] += windows

    def admit(self) -> None:
        self.budget.admit()

    def is_tight(self, count: int) -> bool:
        return not self.budget.takes(count)

    def done(self) -> None:
        """In event time the errors of samples stand behind the rows of their instant."""
        if self.is_timed and self.errors:
            self.out += self.errors
            self.errors.clear()
