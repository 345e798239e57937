"""From what a window shows to output rows: HAVING, row_number, SELECT and the keys of ORDER BY.

show(sample, …)       the rows of pairs of an entry and the values of its aggregates
passing(sample, …)    with row numbers: the pairs that HAVING lets through
place_0(…)            where a pair stands among those it is numbered with: (rank, partition)

Rows that several rules select of one sample are made once, and each rule takes those that its HAVING lets
through.

rule 1   SELECT dev, avg(temp) … HAVING avg(temp) > 80       every(sample)   (avg(temp), row) of all pairs
rule 2   SELECT dev, avg(temp) … HAVING avg(temp) > 90       chosen(made)    a rule's own rows among them
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from sql.algebra.sample.content import Entries, Sample
from sql.codegen.expression_code import NUMBER, Code
from sql.codegen.functions import DATA_ERRORS, FunctionSet
from sql.codegen.hits import HitCounters
from sql.codegen.loop import WINDOW_SLOTS, LoopWriter
from sql.codegen.output_rows import criteria_text, write_row
from sql.codegen.source import Generated, SourceWriter
from sql.emission import Out
from sql.plan.bound import Bound, Read, Slot
from sql.plan.logical import Plan
from sql.types import key_of

Bad = list[tuple[Any, BaseException]]
"""Rows that could not be made: the row they would have been made of, and why."""

Selection = tuple[tuple[Any, ...], ...]
"""A rule's selection from a sample: equal for rules whose rows are equal, and whose HAVING reads the same."""

Made = dict[Selection, list[tuple[Any, ...]]]
"""What HAVING reads of each pair of a sample, and the row of the pair, by what rules select."""


class SampledRows:
    """Makes the rows of a sample."""

    def __init__(self, plan: Plan, functions: FunctionSet, hits: HitCounters, entries: Entries) -> None:
        self.plan = plan
        self.functions = functions
        self.hits = hits
        self.entries = entries
        source, names = SourceWriter(), functions.names
        names.bound |= {"DATA_ERRORS": DATA_ERRORS, "key_of": key_of}
        self.slots: dict[Any, Code] = dict(WINDOW_SLOTS)
        self.slots |= {("aggregate", i): Code(f"v_{i}", True, True) for i in range(len(plan.aggregates))}
        self.slots |= {("analytic", i): Code(f"fixed_{i}", True, True) for i in range(entries.analytics)}
        self.slots |= {
            ("row_number", i): Code(f"n_{i}", False, True, NUMBER) for i in range(len(plan.numberings))
        }
        if plan.numberings:
            self._write_numbering(source)
        self._write_show(source)
        self.code = Generated(source, names.bound)
        self.make = self.code["show"]

    # --- code -----------------------------------------------------------------------------------------------

    def _write_show(self, source: SourceWriter) -> None:
        plan = self.plan
        with self._each(source, "show", len(plan.numberings), judges=not plan.numberings) as loop:
            order = criteria_text(loop, plan.order_by, nulls_lowest=False)
            out = f"{loop.names.bind(Out, 'Out')}(" if plan.order_by else ""
            end = f", None, {order}))" if plan.order_by else ")"
            write_row(loop, plan, f"rows.append({out}", end)
            self._write_hit(loop, "SELECT")

    @contextmanager
    def _each(
        self, source: SourceWriter, name: str, numbers: int = 0, *, judges: bool = False
    ) -> Iterator[LoopWriter]:
        """A function with a loop over the pairs; one that cannot be evaluated is noted in `bad`. `judges`: it
        goes on with those that HAVING lets through."""
        loop = self.functions.loop(source, self.slots)
        with loop.block(f"def {name}(sample, w_start, w_end, w_trigger, bad):"):
            loop.line("rows = []")
            with loop.block(self.header(numbers)), source.attempt("bad.append((e, error))"):
                if judges:
                    loop.skip_unless(self.plan.having)
                    if not self.plan.judges_windows:
                        self._write_hit(loop, "HAVING")
                yield loop
            if judges and self.plan.judges_windows:
                with loop.block("if rows:"):  # the window has met it once, however many rows it has
                    self._write_hit(loop, "HAVING")
            loop.line("return rows")

    def header(self, numbers: int = 0) -> str:
        """The head of a loop over the pairs."""
        values = self._values(numbers)
        return f"for {self.entries.text}, {f'({values})' if values else '_'} in sample:"

    def _values(self, numbers: int = 0) -> str:
        """The locals of the aggregates' values, and of so many row numbers behind them."""
        values = "".join(f"v_{i}, " for i in range(len(self.plan.aggregates)))
        return values + "".join(f"n_{i}, " for i in range(numbers))

    def _write_hit(self, loop: LoopWriter, clause: str) -> None:
        if clause in self.hits.by_clause:
            loop.line(f"{loop.names.bind(self.hits.by_clause[clause], 'met')}.note(w_trigger)")

    def _write_numbering(self, source: SourceWriter) -> None:
        with self._each(source, "passing", judges=True) as loop:
            loop.line(f"rows.append(({self.entries.text}, ({self._values()})))")
        for place, numbering in enumerate(self.plan.numberings):
            source.line("")
            with self._each(source, f"place_{place}", place) as loop:
                loop.key(numbering.partition_by, "key")
                order = criteria_text(loop, numbering.order_by, nulls_lowest=False)
                loop.line(f"rows.append(({order}, key, {self.entries.text}, ({self._values(place)})))")
        source.line("")

    # --- rows -----------------------------------------------------------------------------------------------

    def rows(self, sample: Sample, start_ms: int, end_ms: int, trigger_ms: int, bad: Bad) -> list[Any]:
        """The rows of a window [start, end), those that could not be made in `bad`."""
        if self.plan.numberings:
            sample = self._numbered(sample, (start_ms, end_ms, trigger_ms), bad)
        made: list[Any] = self.make(sample, start_ms, end_ms, trigger_ms, bad)
        return made

    def _numbered(self, sample: Sample, bounds: Sequence[int], bad: Bad) -> Sample:
        """The pairs HAVING lets through with their numbers behind the other values; their order stays."""
        pairs = self.code["passing"](sample, *bounds, bad)
        for place, numbering in enumerate(self.plan.numberings):
            placed = self.code[f"place_{place}"](pairs, *bounds, bad)
            turns = range(len(placed))
            in_order = sorted(turns, key=lambda turn: placed[turn][0]) if numbering.order_by else turns
            counts: dict[Any, int] = {}
            numbers = [0] * len(placed)
            for turn in in_order:
                key = placed[turn][1]
                numbers[turn] = counts[key] = counts.get(key, 0) + 1
            pairs = [
                (entry, (*values, number))
                for (_, _, entry, values), number in zip(placed, numbers, strict=True)
            ]
        found: Sample = pairs
        return found


def reads_of(having: Bound | None) -> tuple[bool, tuple[int, ...]]:
    """True if HAVING reads columns; the keys of the aggregates that it reads."""
    nodes = [] if having is None else list(having.walk())
    aggregates = {node.key for node in nodes if isinstance(node, Slot) and node.kind == "aggregate"}
    return any(isinstance(node, Read) for node in nodes), tuple(sorted(aggregates))


def selection(plan: Plan, places: tuple[int, ...]) -> Selection | None:
    """A rule's selection, with its aggregates at these places of the sample; None if it may fail, or is
    more than columns and aggregates."""
    if plan.order_by or plan.distinct or plan.spreads or plan.numberings or plan.hits or plan.joins:
        return None
    parts: list[tuple[Any, ...]] = []
    for item in plan.items:
        value = item.value
        if item.name is None or item.invisible:
            return None
        if isinstance(value, Read) and value.column is not None:
            parts.append((item.name, "column", value.column))
        elif isinstance(value, Slot) and value.kind == "aggregate":
            parts.append((item.name, "aggregate", places[value.key]))
        else:
            return None
    reads_columns, aggregates = reads_of(plan.having)
    return (reads_columns, *(places[place] for place in aggregates)), *parts


class CommonRows:
    """The rows of one rule among those that several make of a sample. Its text is written when it is first
    needed."""

    def __init__(self, rows: SampledRows, places: tuple[int, ...]) -> None:
        self.rows = rows
        self.selection = selection(rows.plan, places)

    @cached_property
    def _code(self) -> Generated:
        rows, plan, source = self.rows, self.rows.plan, SourceWriter()
        reads_columns, aggregates = reads_of(plan.having)
        known = "e, " if reads_columns else ""
        known += "".join(f"v_{place}, " for place in aggregates)
        with source.block("def every(sample):"):
            source.line("made = []")
            with source.block(rows.header()):
                write_row(rows.functions.loop(source, rows.slots), plan, f"made.append(({known}", ",))")
            source.line("return made")
        with (
            source.block("def chosen(made, w_start, w_end, w_trigger):"),
            source.attempt("return None", reads_error=False),
        ):
            each, loop = f"for {known}row, in made", rows.functions.loop(source, rows.slots)
            if reads_columns:
                source.line("rows = []")
                with source.block(f"{each}:"):
                    loop.skip_unless(plan.having)
                    source.line("rows.append(row)")
                source.line("return rows")
            else:
                test = "" if plan.having is None else f" if {loop.true(plan.having)}"
                source.line(f"return [row {each}{test}]")
        return Generated(source, rows.functions.names.bound)

    def of(self, sample: Sample, made: Made, start_ms: int, end_ms: int, trigger_ms: int) -> list[Any] | None:
        """The rule's rows of a sample; None where it has to make them itself, for it selects
        more than others share, or HAVING fails."""
        if self.selection is None:
            return None
        every = made.get(self.selection)
        if every is None:
            every = made[self.selection] = self._code["every"](sample)
        chosen: list[Any] | None = self._code["chosen"](every, start_ms, end_ms, trigger_ms)
        return chosen
