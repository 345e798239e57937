"""The text of a correlated subquery whose rows are those that its condition finds: the
answer for an event `y`.

def answer(rows, y, y0=None):
    r1 = …                         the row of the statement around it
    if y0 is None:                 not looked up for the whole batch
        y0 = rows(key)
    for r0 in () if y0 is None else (y0,):
        …
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from sql.algebra.table import lookup
from sql.algebra.table.index import keys_of
from sql.algebra.table.search import Search, loop_over
from sql.algebra.table.searched import RowStore
from sql.catalog.validation import CLASSES
from sql.codegen.functions import FunctionSet
from sql.codegen.loop import LoopWriter
from sql.codegen.output_rows import write_row
from sql.codegen.source import SourceWriter
from sql.compiler.shared_code import Answer
from sql.plan.bound import (
    Bound,
    Op,
    Read,
    Slot,
    columns_read,
    conjuncts,
    reads_subquery,
    slot_kinds,
    sources_read,
)
from sql.plan.logical import Plan, SubqueryPlan

LAZY = frozenset(("and", "or", "case", "in"))
"""The operators that may leave all operands but the first one unevaluated."""


def answers_by_row(part: SubqueryPlan) -> bool:
    """True if each row that is found is a row of the subquery as it stands."""
    plan = part.plan
    if plan.row_kind != "plain" or part.kind in ("rows", "values") or plan.orders_rows or plan.reads_beside:
        return False
    return not any(_reads_more(node) for node in plan.expressions)


def indexed_column(part: SubqueryPlan) -> Read | None:
    """The column whose values are found by an index; None where all are read. Columns of other types may hold
    values that cannot be compared, which is an error of the event."""
    if not (part.asks_equal and answers_by_row(part) and lookup.INDEXED):
        return None
    value = next(item.value for item in part.plan.items if not item.invisible)
    if not isinstance(value, Read) or value.source != 0 or value.column is None:
        return None
    return value if value.type in CLASSES else None


def answers_each(plan: Plan) -> list[int]:
    """The subqueries over relations that are answered for each event of a statement, whatever it is."""
    if plan.sources[0].filter is not None:
        return []
    first = [item.value for item in plan.items] if plan.where is None else [plan.where]
    slots = [slot.key for node in first for slot in _slots(node) if slot.kind == "subquery"]
    parts = {place: plan.subqueries[place] for place in sorted(slots)}
    return [
        place
        for place, part in parts.items()
        if part.correlated
        and part.plan.sources[0].relation in ("window", "table")
        and answers_by_row(part)
        and indexed_column(part) is None
    ]


def _slots(node: Bound) -> Iterator[Slot]:
    """The values of operators that an expression reads, whatever its operands are."""
    if isinstance(node, Slot):
        yield node
    elif isinstance(node, Op):
        for part in node.args[:1] if node.name in LAZY else node.args:
            yield from _slots(part)


def _reads_more(node: Bound) -> bool:
    """True if an expression reads what is known of the inner event beside its row."""
    return not slot_kinds(node) <= {"variable", "arrived", "context"}


class AnswerText:
    """Writes the function of one subquery."""

    def __init__(
        self, part: SubqueryPlan, store: RowStore, functions: FunctionSet, *, is_indexed: bool = True
    ) -> None:
        """`store`: one of those that the function is made for. `is_indexed`: rows are searched by
        an index where the condition allows; else every row that the search gives is tested."""
        self.part = part
        self.plan = part.plan
        self.functions = functions
        self.of_relation = store.of_relation
        outer, parts = range(1, 1 + len(part.outer)), tuple(conjuncts(part.plan.where))
        self.search = Search(parts if is_indexed else (), 0, outer, store)
        self.answer = self._compiled(parts, outer)

    def over(self, store: RowStore) -> Answer:
        """The function for one store."""
        rows = store.content if self.search.reads_all else self.search.opened(store)  # nothing changes them
        return partial(self.answer, rows)

    def ahead(self, store: RowStore) -> Callable[..., Sequence[Any]] | None:
        """The function that finds rows of a store for a batch of events; None where no column
        of an event is their key."""
        column = self.search.column_of(1)
        if len(self.part.outer) > 1 or self.functions.reader.shape != "dict" or column is None:
            return None
        reads = columns_read(self.plan.expressions, 0) if self.of_relation else ()
        find = self.search.ahead(store, reads)
        return lambda events: find(keys_of(events, column))

    def _compiled(self, parts: Sequence[Bound], outer: range) -> Callable[..., Any]:
        """The function, which takes the store's search as an argument."""
        plan, source, search = self.plan, SourceWriter(), self.search
        assert not reads_subquery(parts)
        rows = {place: f"r{place}" for place in (0, *outer)}
        read = frozenset().union(*map(sources_read, plan.expressions))
        kept = (0,) if self.of_relation else ()
        loop = loop_over(self.functions, source, rows, nullable=outer, kept=kept)
        with source.block("def answer(rows, y, y0=None):"):
            source.line("e = y.row")
            if len(outer) == 1:
                source.line("r1 = e[0] if e.__class__ is tuple else e")
            for place in sorted(read.intersection(outer)) if len(outer) > 1 else ():
                source.line(f"r{place} = e[{place - 1}]")
            source.line("found = []" if self.part.kind == "list" else "found = None")
            with search.each(loop, "rows", "r0" if kept else "y0", hint="y0"):
                if not kept:
                    source.line("r0 = y0.row")
                inner = loop.inner()
                inner.test([part for part in parts if part not in search.settled])
                inner.skip_unless(plan.having)
                self._write_found(inner)
            source.line("return False" if self.part.kind == "exists" else self._result)
        found = self.functions.generate(source, warnings=self.functions.writer.warnings)
        answer: Callable[..., Any] = found["answer"]
        return answer

    @property
    def _result(self) -> str:
        """The text of the value: NULL without a row; that of the one row's only column stands in a tuple."""
        return "return None if found is None else found[0]" if self.part.kind == "scalar" else "return found"

    def _write_found(self, loop: LoopWriter) -> None:
        source, kind = loop.source, self.part.kind
        if kind == "exists":
            source.line("return True")
            return
        if kind in ("scalar", "row"):
            with source.block("if found is not None:"):
                source.line("warnings.several_rows += 1")
                source.line("return None")
        if kind == "row":
            write_row(loop, self.plan, "found = ", "")
            return
        item = next(item for item in self.plan.items if not item.invisible)
        value = loop.value(item.value)
        source.line(f"found.append({value})" if kind == "list" else f"found = ({value},)", item.value.span)
