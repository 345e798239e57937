"""match_recognize behind the windows of a source: changes of the window go in,
measures of matches come out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from sql.algebra.event import Delta, Event
from sql.algebra.recognize import HeldRecognizer, Recognizer
from sql.algebra.recognize.readings import Reading
from sql.codegen.functions import DATA_ERRORS
from sql.compiler.recognize_text import RecognizeCode
from sql.engine.statement.matches import show_each, shows_each
from sql.engine.statement.statement_core import Change, StatementCore
from sql.plan.logical import Plan


def _report(statement: StatementCore, code: RecognizeCode, row: object, error: BaseException) -> None:
    statement.report(row, code.functions.failure(error, code.code))


class Recognized:
    """The matches of one source. Rows of measures are dicts."""

    def __init__(self, code: RecognizeCode, statement: StatementCore) -> None:
        self.code = code
        self.statement = statement
        self.fail = partial(_report, statement, code)
        """Reports a row that could not be evaluated."""
        self.recognizer = code.recognizer(self.fail)

    def change(self, delta: Delta) -> Delta:
        """The matches that a change of the window completes, as events."""
        now_ms = self.statement.now_ms
        found = self.recognizer.change(_rows(delta.inserted), _rows(delta.removed), now_ms)
        newest = delta.inserted[-1].row if delta.inserted else None
        return self.shown(self.rows(found, newest))

    def advance(self, now_ms: int) -> Delta:
        """The matches whose interval is over, as events."""
        return self.shown(self.rows(self.recognizer.advance(now_ms)))

    def shown(self, rows: Iterable[Any]) -> Delta:
        """Rows of matches as events of their own."""
        return Delta([self.statement.new_event(row, self.statement.now_ms) for row in rows])

    def present(self, content: Iterable[Event]) -> list[Event]:
        """The matches in a content. Its errors were reported when the events came."""
        found = self.recognizer
        reader = found if isinstance(found, HeldRecognizer) else HeldRecognizer(self.code.rules, self.fail)
        with self.statement.reading():
            rows = self.rows(reader.present(_rows(content)))
        return [Event(row, self.statement.now_ms, -number) for number, row in enumerate(rows, 1)]

    def rows(self, matches: Iterable[Reading], newest: object = None) -> list[dict[str, Any]]:
        """The measures of matches that the row `newest` completes."""
        measure, out = self.code.measure, []
        for match in matches:
            try:
                out.append(measure(match))
            except DATA_ERRORS as error:
                self.fail(newest, error)
        return out


def _rows(events: Iterable[Event]) -> list[tuple[int, Any]]:
    return [(event.seq, event.row) for event in events]


def is_alone(plan: Plan) -> bool:
    """True if a statement reads one stream through match_recognize, without a window,
    and nothing beside it."""
    source = plan.sources[0]
    if len(plan.sources) != 1 or source.recognize is None or source.recognize.interval is not None:
        return False
    beside = plan.relations or plan.subqueries or plan.analytics
    return not (source.keeps or source.keeps_last or source.pattern or source.lot or beside)


def read_rows(
    found: Recognized,
    step: Callable[[Sequence[Change], int], None],
    statement: StatementCore,
    rows: Sequence[Any],
    now_ms: int,
) -> None:
    """The loop of a statement whose events go to a match_recognize and nowhere else; an error is reported and
    changes nothing. `step` takes the changes of one event."""
    assert isinstance(found.recognizer, Recognizer)
    if statement.program.filters[0] is not None:
        rows = list(_passing(statement, rows, now_ms))
    events = (found.rows(matches, row) for row, matches in found.recognizer.read(rows))
    if shows_each(statement.plan):
        show_each(statement, events, now_ms)
        return
    for shown in filter(None, events):
        step((found.shown(shown),), now_ms)


def _passing(statement: StatementCore, rows: Sequence[Any], now_ms: int) -> Iterable[Any]:
    """The rows that the filter of the source lets pass."""
    passes = statement.program.filters[0]
    assert passes is not None
    for row in rows:
        try:
            if passes(Event(row, now_ms, 0)):
                yield row
        except DATA_ERRORS as error:
            statement.fail(row, error)
