"""match_recognize behind the windows of a source: changes of the window go in,
measures of matches come out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sql.aggregates.base import Removal
from sql.algebra.accumulators import SKIP, AggregateSet
from sql.algebra.build import period
from sql.algebra.event import Delta, Event
from sql.algebra.recognize import Recognizer
from sql.catalog.streams import Catalog
from sql.codegen.functions import DATA_ERRORS, FunctionSet, PatternReader
from sql.codegen.support import Warnings
from sql.functions.registry import Context
from sql.plan.logical import ItemPlan, PeriodArgument, Plan, SourcePlan
from sql.plan.options import RuleOptions
from sql.rows import Shape

if TYPE_CHECKING:
    from sql.engine.running.statement import Statement


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
        self.conditions = FunctionSet(
            catalog, context, warnings, shape=shape, text=plan.text, kind=PatternReader
        )
        self.functions = FunctionSet(catalog, context, warnings, shape=shape, text=plan.text, joined=True)
        fits = {
            place: self.conditions.true(variable.condition)
            for place, variable in enumerate(plan.variables)
            if variable.condition is not None
        }
        interval = None if plan.interval is None else plan.interval
        length = (
            None
            if interval is None
            else period(PeriodArgument(interval.parts, interval.span), self.functions)
        )
        self.recognizer = Recognizer(
            plan,
            fits=fits,
            key=self.conditions.key(plan.partition_by),
            interval=length,
            zone=context.zone,
            most=options.max_recognize_attempts,
            windowed=bool(source.windows),
        )
        items = tuple(ItemPlan(name, value) for name, value in plan.measures)
        self.project = self.functions.row(items, [plan.row_columns for _ in plan.variables])
        self.aggregates = [
            (AggregateSet((call,), self.functions, Removal.NEVER), place) for call, place in plan.aggregates
        ]

    def change(self, delta: Delta, now_ms: int) -> list[dict[str, Any]]:
        """The rows of the matches that a change of the window completes."""
        return self._rows(self.recognizer.change(_rows(delta.inserted), _rows(delta.removed), now_ms))

    def enter(self, number: int, row: Any, now_ms: int) -> list[dict[str, Any]]:
        """The rows of the matches that one row completes, where rows never leave."""
        found = self.recognizer.enter(number, row, now_ms)
        return self._rows(found) if found else []

    def advance(self, now_ms: int) -> list[dict[str, Any]]:
        """The rows of the matches whose interval is over."""
        return self._rows(self.recognizer.advance(now_ms))

    def present(self, content: Iterable[Event]) -> list[dict[str, Any]]:
        """The rows of the matches in a content."""
        return self._rows(self.recognizer.present(_rows(content)))

    def next_deadline(self) -> int | None:
        return self.recognizer.deadline()

    def _rows(self, matches: Iterable[tuple[Any, ...]]) -> list[dict[str, Any]]:
        out = []
        for match in matches:
            lists = tuple(list(value) if value.__class__ is tuple else value for value in match)
            values = [self._aggregate(*item, match) for item in self.aggregates]
            out.append(self.project(Event(lists, 0, 0), values))
        return out

    @staticmethod
    def _aggregate(aggregates: AggregateSet, place: int, match: tuple[Any, ...]) -> Any:
        """The aggregate of the rows of one variable."""
        (accumulator,) = aggregates.fresh()
        for row in match[place] or ():
            event = Event((*(None,) * place, row, *(None,) * (len(match) - place - 1)), 0, 0)
            (value,) = aggregates.values_of(event)
            if value is not SKIP:
                accumulator.add(value, event)
        return accumulator.result()

    def counters(self) -> dict[str, int]:
        return self.recognizer.counters()

    def snapshot(self) -> Any:
        return self.recognizer.snapshot()

    def restore(self, state: Any, make_row: Callable[[dict[str, Any]], Any]) -> None:
        self.recognizer.restore(state, make_row)


def _rows(events: Iterable[Event]) -> Iterable[tuple[int, Any, int]]:
    return [(event.seq, event.row, event.time_ms) for event in events]


def is_alone(plan: Plan) -> bool:
    """Whether a statement reads one stream through match_recognize, without a window,
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


def read_rows(statement: Statement, found: Recognized, rows: Sequence[Any], now_ms: int) -> None:
    """Events for a match_recognize that is alone; what is not evaluated is told and changes nothing."""
    passes = statement.program.filters[0]
    for row in rows:
        statement.seq += 1
        try:
            if passes is not None and not passes(Event(row, now_ms, statement.seq)):
                continue
            shown = found.enter(statement.seq, row, now_ms)
        except DATA_ERRORS as error:
            statement.program.functions.spans |= found.conditions.spans
            statement.fail(row, error)
            continue
        if shown:
            statement.joined([statement.new_event(match, now_ms) for match in shown], now_ms)
