"""match_recognize behind the windows of a source: changes of the window go in,
measures of matches come out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sql.algebra.event import Delta, Event
from sql.algebra.recognize import Recognizer
from sql.algebra.recognize.attempts import Reading
from sql.codegen.functions import DATA_ERRORS
from sql.compiler.patterns.recognize_text import RecognizeCode
from sql.engine.running.matches import show_each, shows_each
from sql.errors import DataError, positioned
from sql.plan.logical import Plan

if TYPE_CHECKING:
    from sql.engine.running.running_statement import RunningStatement

Fail = Callable[[Any, BaseException], None]
"""Called for a row that cannot be evaluated, or that completes a match whose measures cannot; None is a match
that time completes."""


class Recognized:
    """The matches of one source. Rows of measures are dicts."""

    def __init__(self, of_plan: RecognizeCode) -> None:
        self.of_plan = of_plan
        self.recognizer = of_plan.held() if of_plan.is_held else of_plan.recognizer()

    def change(self, delta: Delta, now_ms: int, fail: Fail) -> list[dict[str, Any]]:
        """The rows of the matches that a change of the window completes."""
        found = self.recognizer.change(_rows(delta.inserted), _rows(delta.removed), now_ms, fail)
        newest = delta.inserted[-1].row if delta.inserted else None
        return self.rows(found, newest, fail)

    def advance(self, now_ms: int, fail: Fail) -> list[dict[str, Any]]:
        """The rows of the matches whose interval is over."""
        return self.rows(self.recognizer.advance(now_ms), None, fail)

    def present(self, content: Iterable[Event], fail: Fail) -> list[dict[str, Any]]:
        """The rows of the matches in a content."""
        return self.rows(self.of_plan.held().present(_rows(content), fail), None, fail)

    def next_deadline(self) -> int | None:
        return self.recognizer.deadline()

    def rows(self, matches: Iterable[Reading], newest: Any, fail: Fail) -> list[dict[str, Any]]:
        """The measures of matches that the row `newest` completes."""
        tell, out = self.of_plan.tell, []
        for match in matches:
            try:
                out.append(tell(match))
            except DATA_ERRORS as error:
                fail(newest, error)
        return out

    def why(self, error: BaseException) -> DataError:
        """The error, with its place in the text of the rule."""
        of_plan = self.of_plan
        line = of_plan.code.line_of(error)
        span = None if line is None else of_plan.code.spans.get(line)
        if span is None:
            return of_plan.functions.failure(error)
        return positioned(error, span, of_plan.plan.text)

    def counters(self) -> dict[str, int]:
        return self.recognizer.counters()

    def snapshot(self) -> Any:
        return self.recognizer.snapshot()

    def restore(self, state: Any, make_row: Callable[[dict[str, Any]], Any]) -> None:
        self.recognizer.restore(state, make_row)


def _rows(events: Iterable[Event]) -> list[tuple[int, Any, int]]:
    return [(event.seq, event.row, event.time_ms) for event in events]


def is_alone(plan: Plan) -> bool:
    """True if a statement reads one stream through match_recognize, without a window,
    and nothing beside it."""
    source = plan.sources[0]
    if len(plan.sources) != 1 or source.recognize is None or source.recognize.interval is not None:
        return False
    beside = (
        plan.relations
        or plan.subqueries
        or plan.analytics
        or source.pattern
        or source.lot
        or source.keeps_last
    )
    return not (source.keeps or beside)


def failures_of(statement: RunningStatement, found: Recognized) -> Fail:
    """The function that adds an error event for each row that cannot be evaluated."""

    def fail(row: object, error: BaseException) -> None:
        statement.errors.append(statement.error_of(row, str(found.why(error)), statement.now_ms))

    return fail


def read_rows(statement: RunningStatement, found: Recognized, rows: Sequence[Any], now_ms: int) -> None:
    """Take events for a match_recognize that is alone; an error is reported and changes nothing."""
    assert isinstance(found.recognizer, Recognizer)
    fail = failures_of(statement, found)
    is_each = shows_each(statement.plan)
    if statement.program.filters[0] is not None:
        rows = list(_passing(statement, rows, now_ms))
    for row, matches in found.recognizer.lot(rows, fail):
        shown = found.rows(matches, row, fail)
        if shown and is_each:
            show_each(statement, shown, now_ms)
        elif shown:
            statement.joined([statement.new_event(match, now_ms) for match in shown], now_ms)


def _passing(statement: RunningStatement, rows: Sequence[Any], now_ms: int) -> Iterable[Any]:
    """The rows that the filter of the source lets pass."""
    passes = statement.program.filters[0]
    assert passes is not None
    for row in rows:
        try:
            if passes(Event(row, now_ms, 0)):
                yield row
        except DATA_ERRORS as error:
            statement.fail(row, error)
