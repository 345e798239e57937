"""match_recognize behind the windows of a source: changes of the window go in,
measures of matches come out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sql.algebra.event import Delta, Event
from sql.algebra.recognize import HeldRecognizer, Recognizer
from sql.algebra.recognize.attempts import Reading, Rules
from sql.algebra.recognize.automaton import RecognizeProgram
from sql.algebra.window_builder import period
from sql.catalog.streams import Catalog
from sql.codegen.functions import DATA_ERRORS, FunctionSet, PatternReader
from sql.codegen.support import Warnings
from sql.compiler.recognize_text import RecognizeText
from sql.engine.running.matches import show_each, shows_each
from sql.errors import DataError, positioned
from sql.functions.registry import Context
from sql.plan.logical import PeriodArgument, Plan, SourcePlan
from sql.plan.options import RuleOptions
from sql.rows import Shape

if TYPE_CHECKING:
    from sql.engine.running.running_statement import RunningStatement

Fail = Callable[[Any, BaseException], None]
"""Called for a row that cannot be evaluated, or that completes a match whose measures cannot; None is a match
that time completes."""


class Recognized:
    """The matches of one source. Rows of measures are dicts."""

    def __init__(
        self,
        source: SourcePlan,
        options: RuleOptions,
        catalog: Catalog,
        context: Context,
        warnings: Warnings,
        shape: Shape,
    ) -> None:
        plan = source.recognize
        assert plan is not None
        self.plan = plan
        is_held = bool(source.windows) or plan.interval is not None
        functions = FunctionSet(catalog, context, warnings, shape=shape, text=plan.text, kind=PatternReader)
        program = RecognizeProgram(
            plan.pattern, {item.name: place for place, item in enumerate(plan.variables)}
        )
        text = RecognizeText(plan, program, catalog, context, warnings, shape, is_held=is_held)
        self.functions = functions
        self.code = text.code
        self.tell: Callable[[Reading], dict[str, Any]] = self.code["tell"]
        rules = Rules(program, self.code["step"], len(plan.variables), plan.previous)
        key, most = functions.key(plan.partition_by), options.max_recognize_attempts
        length = plan.interval
        interval = None if length is None else period(PeriodArgument(length.parts, length.span), functions)
        self.held = HeldRecognizer(
            plan, rules, key, most, interval=interval, zone=context.zone, windowed=bool(source.windows)
        )
        """Rows that leave a window, matches that wait for the end of an interval, or a content that is read
        anew."""
        self.recognizer = self.held if is_held else Recognizer(plan, rules, key, most)

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
        return self.rows(self.held.present(_rows(content), fail), None, fail)

    def next_deadline(self) -> int | None:
        return self.recognizer.deadline()

    def rows(self, matches: Iterable[Reading], newest: Any, fail: Fail) -> list[dict[str, Any]]:
        """The measures of matches that the row `newest` completes."""
        tell, out = self.tell, []
        for match in matches:
            try:
                out.append(tell(match))
            except DATA_ERRORS as error:
                fail(newest, error)
        return out

    def why(self, error: BaseException) -> DataError:
        """The error, with its place in the text of the rule."""
        line = self.code.line_of(error)
        span = None if line is None else self.code.spans.get(line)
        return self.functions.failure(error) if span is None else positioned(error, span, self.plan.text)

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
