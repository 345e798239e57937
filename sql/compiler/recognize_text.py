"""The text of match_recognize: the step of a partition's readings with a row, and the row of a match.

    step(readings, number, e, recent)   the readings that go on with the row e,
                                        and those that are complete with it
    measure(reading)                    the measures of a match

A reading is a tuple: the number of its first row, the place of its newest one,
and for each variable `v_i` its row, or for one that takes several the newest of them behind those before it:
(before, row).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sql.aggregates.base import Removal
from sql.algebra.event import Event
from sql.algebra.kept import Accumulated
from sql.algebra.recognize import HeldRecognizer, Recognizer
from sql.algebra.recognize.automaton import RecognizeProgram
from sql.algebra.recognize.readings import Reading, Rules
from sql.algebra.windows.parameters import period
from sql.codegen.expression_code import Code
from sql.codegen.functions import PatternReader
from sql.codegen.loop import LoopWriter
from sql.codegen.output_rows import write_items
from sql.codegen.source import Generated, SourceWriter, identifier
from sql.compiler.shared_code import SharedCode
from sql.errors import Fail
from sql.plan.bound import Bound, Read
from sql.plan.clauses import ItemPlan, PeriodArgument, SourcePlan
from sql.plan.pattern_plan import OWN
from sql.plan.recognize_plan import RecognizePlan, RowVariablePlan


class RecognizeText:
    """Writes and compiles the functions of one match_recognize."""

    def __init__(
        self, plan: RecognizePlan, program: RecognizeProgram, around: SharedCode, *, is_held: bool
    ) -> None:
        """`is_held`: rows may leave a window, or matches wait for the end of an interval."""
        self.plan = plan
        self.functions = around.function_set(subqueries=())
        width = len(plan.variables)
        self.places = [f"v_{place}" for place in range(width)]
        self.lists = {place: f"list_{place}" for place, is_list in enumerate(plan.lists) if is_list}
        """The names of the lists of rows of variables that take several, the oldest first."""
        self.previous = {
            width + i: f"p_{offset}" if offset else "e" for i, offset in enumerate(plan.previous)
        }
        is_one_path = not plan.all_matches and not any(
            self._reads_variables(variable.condition) for variable in plan.variables
        )
        self.is_first_only = not is_held and not plan.all_matches and plan.skip == "past last row"
        """True if the first reading that is complete ends all others."""
        self.covers = is_one_path
        """True if of readings of an attempt that can go on alike the preferred is enough."""
        self.is_by_attempt = is_one_path and not self.is_first_only
        self.names = self.functions.names
        self.names.bound |= {
            "Event": Event,
            "after": program.edges(may_cover=is_one_path),
            "context": around.context,
            "partition": around.partition,
            "rows_of": rows_of,
        }
        source = SourceWriter()
        self._write_step(source)
        self._write_measures(source)
        self.code = Generated(source, self.names.bound)

    def _reads_variables(self, condition: Bound | None) -> bool:
        """True if a condition reads the rows taken before."""
        return any(read.source in range(len(self.places)) for read in _reads(condition))

    def _loop(self, source: SourceWriter, rows: dict[int, str], sure: str = "") -> LoopWriter:
        """A writer of statements over rows in locals, NULL for all but the `sure` one."""
        slots: dict[Any, Code] = {("event_time", None): Code("context.now_ms", False, False, "number")}
        slots |= {("aggregate", i): Code(f"a_{i}", True, True) for i in range(len(self.plan.aggregates))}
        nullable = {place for place, name in rows.items() if name != sure}
        return self.functions.loop(source, slots, rows=rows, nullable=nullable)

    def _variables(self) -> dict[int, str]:
        return {**dict(enumerate(self.places)), **self.lists}

    # --- a row ----------------------------------------------------------------------------------------------

    def _write_step(self, source: SourceWriter) -> None:
        variables = ", ".join(self.places)
        with source.block("def step(readings, number, e, recent):"):
            for offset in self.plan.previous:
                if offset:
                    source.line(f"p_{offset} = recent[{offset - 1}]")
            loop = self._loop(source, {OWN: "e", **self.previous, **self._variables()}, "e")
            for read in self._common_reads():
                loop.reader.read(read.source, read.column)
            loop.reader.load(source)
            source.line("live, complete = [], []")
            if self.covers:
                source.line("covered = 0")
            if self.is_by_attempt:
                source.line("was = None")
            with source.block(f"for first, place, {variables} in readings:"):
                if self.is_by_attempt:
                    with source.block("if first != was:"):
                        source.line("was, covered = first, 0")
                with source.block("for place, variable, bit, covers, ends, goes_on in after[place]:"):
                    self._write_taken(loop)
            source.line("return live, complete")
        source.line("")

    def _common_reads(self) -> list[Read]:
        """The columns that conditions read of the row itself and of those before it."""
        return [
            read
            for variable in self.plan.variables
            for read in _reads(variable.condition)
            if read.source not in range(len(self.places)) and read.column is not None
        ]

    def _write_taken(self, loop: LoopWriter) -> None:
        """A place takes the row, if the condition of its variable holds."""
        source = loop.source
        if self.covers:
            with source.block("if covered & bit:"):
                source.line("continue")
        for number, variable in enumerate(self.plan.variables):
            keyword = "elif" if number else "if"
            with source.block(f"{keyword} variable == {number}:  # {identifier(variable.name)}"):
                self._write_variable(loop.inner(), number, variable)
        with source.block("if ends:"):
            source.line("return [], [reading]" if self.is_first_only else "complete.append(reading)")
        with source.block("if goes_on:"):
            source.line("live.append(reading)")
            if self.covers:
                source.line("covered |= covers")

    def _write_variable(self, loop: LoopWriter, number: int, variable: RowVariablePlan) -> None:
        """The reading with the row as one of this variable."""
        read = (
            {part.source for part in variable.condition.walk() if isinstance(part, Read)}
            if variable.condition
            else set()
        )
        for place in sorted(read.intersection(self.lists)):
            loop.line(f"{self.lists[place]} = rows_of({self.places[place]})")
        loop.skip_unless(variable.condition)
        taken = list(self.places)
        taken[number] = f"({taken[number]}, e)" if variable.is_list else "e"
        loop.line(f"reading = (first, place, {', '.join(taken)})")

    # --- a match --------------------------------------------------------------------------------------------

    def _write_measures(self, source: SourceWriter) -> None:
        plan = self.plan
        with source.block("def measure(reading):"):
            source.line(f"first, place, {', '.join(self.places)} = reading")
            for place, name in self.lists.items():
                source.line(f"{name} = rows_of({self.places[place]})")
            if plan.aggregates:
                source.line("x = None")
            for i, (call, place) in enumerate(plan.aggregates):
                self._write_aggregate(source, Accumulated(call, i, Removal.NEVER), place)
            loop = self._loop(source, self._variables())
            items = [ItemPlan(name, value) for name, value in plan.measures]
            write_items(loop, items, [plan.row_columns] * len(self.places), "return ", "")

    def _write_aggregate(self, source: SourceWriter, part: Accumulated, place: int) -> None:
        """The aggregate of the rows of one variable."""
        make = self.names.bind(part.make, f"make_{part.place}")
        source.line(f"acc_{part.place} = {make}()")
        with source.block(f"for number, e in enumerate({self.lists[place]} or ()):"):
            if part.call.definition.needs_event:
                source.line("x = Event(e, 0, number)")
            loop = self._loop(source, {**dict(enumerate(self.places)), place: "e"}, "e")
            part.prepare(loop)
            part.check(loop, "")
            part.write(loop, "", enters=True)
        source.line(f"a_{part.place} = {part.result('')}")


class RecognizeCode:
    """A match_recognize behind the windows of a source, made once for all instances of the statement."""

    def __init__(self, source: SourcePlan, around: SharedCode) -> None:
        plan = source.recognize
        assert plan is not None
        self.plan = plan
        self.functions = around.function_set(text=plan.text, kind=PatternReader, subqueries=())
        self.is_windowed = source.keeps
        self.is_held = self.is_windowed or plan.interval is not None
        """True if rows leave a window, or matches wait for the end of an interval."""
        program = RecognizeProgram(
            plan.pattern, {item.name: place for place, item in enumerate(plan.variables)}
        )
        self.code = RecognizeText(plan, program, around, is_held=self.is_held).code
        self.measure: Callable[[Reading], dict[str, Any]] = self.code["measure"]
        key = self.functions.key(plan.partition_by)
        self.rules = Rules(plan, program, self.code["step"], key, around.options.max_recognize_attempts)
        self.zone = around.context.zone

    def recognizer(self, fail: Fail) -> Recognizer | HeldRecognizer:
        """The recognizer of an instance; `fail` takes rows that cannot be evaluated."""
        if not self.is_held:
            return Recognizer(self.rules, fail)
        return HeldRecognizer(self.rules, fail, ends=self._ends(), windowed=self.is_windowed)

    def _ends(self) -> Callable[[int], int] | None:
        """From an instant to the end of the interval that begins there."""
        length, zone = self.plan.interval, self.zone
        if length is None:
            return None
        interval = period(PeriodArgument(length.parts, length.span), self.functions)
        return lambda now_ms: interval.add(now_ms, zone)


def _reads(condition: Bound | None) -> list[Read]:
    return [] if condition is None else [part for part in condition.walk() if isinstance(part, Read)]


def rows_of(cell: Any) -> list[Any] | None:
    """The rows of a variable that takes several, the oldest first; None where there is none."""
    if cell is None:
        return None
    found = []
    while cell is not None:
        cell, row = cell
        found.append(row)
    found.reverse()
    return found
