"""Rows that several rules select of one sample: made once,
and each rule takes those that its HAVING lets through.

rule 1   SELECT dev, avg(temp) … HAVING avg(temp) > 80       every(sample)          the rows of all pairs
rule 2   SELECT dev, avg(temp) … HAVING avg(temp) > 90       chosen(sample, made)   a rule's own among them
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from sql.algebra.sample.content import Sample
from sql.algebra.sample.sampled_rows import Bad, SampledRows
from sql.codegen.output_rows import write_row
from sql.codegen.source import Generated, SourceWriter
from sql.plan.bound import Read, Slot
from sql.plan.logical import Plan

Selection = tuple[tuple[Any, ...], ...]
"""A rule's selection from a sample: equal for rules whose rows are equal."""

Made = dict[Selection, list[Any]]
"""The rows of all pairs of a sample, by what rules select."""


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
    return tuple(parts)


class CommonRows:
    """The rows of one rule among those that several make of a sample. Its text is written when it is first
    needed."""

    def __init__(self, rows: SampledRows, places: tuple[int, ...]) -> None:
        self.rows = rows
        self.selection = selection(rows.plan, places)

    @cached_property
    def _code(self) -> Generated:
        own, plan = self.rows.loop, self.rows.plan
        source = SourceWriter()
        loop = own.beside(source)
        with loop.block("def every(sample):"):
            loop.line("rows = []")
            with loop.block(self.rows.header("sample")):
                write_row(loop.writer, plan, "rows.append(", ")")
            loop.line("return rows")
        loop.renew()
        with loop.block("def chosen(sample, made, w_start, w_end, w_trigger, bad):"):
            loop.line("rows = []")
            with loop.block(self.rows.header("zip(sample, made)", row="row")):
                with loop.block("try:"):
                    loop.writer.skip_unless(plan.having)
                    loop.line("rows.append(row)")
                with loop.block("except DATA_ERRORS as error:"):
                    loop.line("bad.append((e, error))")
            loop.line("return rows")
        return Generated(source, loop.names.bound)

    def of(self, sample: Sample, made: Made, start_ms: int, end_ms: int, trigger_ms: int) -> list[Any] | None:
        """The rule's rows of a sample; None where it has to make them itself, for it selects
        more than others share, or HAVING fails."""
        if self.selection is None:
            return None
        rows = made.get(self.selection)
        if rows is None:
            rows = made[self.selection] = self._code["every"](sample)
        bad: Bad = []
        chosen: list[Any] = self._code["chosen"](sample, rows, start_ms, end_ms, trigger_ms, bad)
        return None if bad else chosen
