"""A source of FROM that is fed by the matches of a pattern instead of by events.

This is the one place where a running query meets `sql.algebra.pattern`: streams and
time go in, rows come out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sql.algebra.event import Event
from sql.algebra.pattern import Pattern
from sql.codegen.functions import DATA_ERRORS
from sql.compiler.program import PatternCode
from sql.emission import Emission
from sql.engine.statement.statement_core import StatementCore
from sql.plan.logical import Plan
from sql.rows import MakeRow


class Matches:
    """The pattern of one source, started at `now_ms`.
    The statement begins its work before the pattern does."""

    def __init__(
        self, code: PatternCode, now_ms: int, report: Callable[[Any, object], None], *, uses_first: bool
    ) -> None:
        """`report` takes the events that cannot be evaluated, and the reasons.
        `uses_first`: matches that are true at the start are used, as in a context partition."""
        self.plan = code.plan
        self.streams = code.streams
        self.is_by_name = code.source.matches_by_name
        self.functions = code.functions
        self.pattern = code.pattern(lambda row, error: report(row, code.functions.failure(error)))
        first = self.pattern.start(now_ms)
        self.first = first if uses_first else []
        """Matches that are true at once in a partition; they are processed when time next moves."""
        self.began_ms = now_ms

    def filter_by(self, where: Callable[[Event], bool]) -> None:
        """Drop the matches that WHERE refuses before the pattern compares matches with each other."""
        pattern = self.pattern
        if not isinstance(pattern, Pattern) or not (self.plan.suppress or self.plan.discard):
            return

        def passes(match: tuple[Any, ...]) -> bool:
            (row,) = self._rows([match])
            try:
                return where(Event(row, pattern.machine.now, 0))
            except DATA_ERRORS:  # it is reported where the rows of the statement are made
                return True

        pattern.passes = passes

    def enter(self, stream: str, row: object, now_ms: int) -> Sequence[Any]:
        """The rows of the matches that an event completes. One that cannot be evaluated changes nothing."""
        if stream not in self.streams:
            return ()
        return [row for rows in self.each(stream, (row,), now_ms) for row in rows]

    def each(self, stream: str, rows: Sequence[Any], now_ms: int) -> Iterable[Sequence[Any]]:
        """For each event that completes matches their rows."""
        return map(self._rows, self.pattern.enter_each(stream, rows, now_ms))

    def advance(self, now_ms: int) -> Sequence[Any]:
        """The rows of the matches that time completes."""
        first, self.first = self.first, []
        return self._rows([*first, *self.pattern.advance(now_ms)])

    def next_deadline(self) -> int | None:
        return self.began_ms if self.first else self.pattern.deadline()

    def _rows(self, matches: list[tuple[Any, ...]]) -> Sequence[Any]:
        return [self.plan.by_name(match) for match in matches] if self.is_by_name else matches

    def counters(self) -> dict[str, int]:
        return self.pattern.counters()

    def snapshot(self) -> Any:
        return self.pattern.snapshot()

    def restore(self, state: Any, make_row: MakeRow) -> None:
        self.first = []
        self.pattern.restore(state, make_row)


def is_plain(plan: Plan) -> bool:
    """True if the rows of a statement are the matches of one pattern, each by itself."""
    source = plan.sources[0]
    if source.pattern is None or source.windows or source.matches_by_name or source.keeps_last or plan.joins:
        return False
    return shows_each(plan) and not (source.pattern.suppress or source.pattern.discard)


def shows_each(plan: Plan) -> bool:
    """True if each row that a source gives is a row of the statement, whatever came before it."""
    if plan.where or plan.having or plan.group_by or plan.orders_rows or plan.aggregates or plan.into_table:
        return False
    return not plan.reads_beside and plan.output is None and plan.selector != "rstream"


def show_each(statement: StatementCore, events: Iterable[Sequence[Any]], now_ms: int) -> None:
    """The rows that each of several events gives are one emission."""
    show, whole, name, out = statement.code["show"], statement.groups.whole, statement.name, statement.out
    for rows in events:
        shown: list[Any] = []
        for row in rows:
            statement.seq += 1
            show(statement, Event(row, now_ms, statement.seq), whole, shown, True)
        if shown:
            out.append(Emission(name, now_ms, "rows", shown))


def show_matches(
    matches: Matches, stream: str, statement: StatementCore, rows: Sequence[Any], now_ms: int
) -> None:
    """The loop of a statement whose rows are the matches of a pattern, for the events of one stream."""
    show_each(statement, matches.each(stream, rows, now_ms), now_ms)
