"""The text of `push` for a stream that drives a join: each event finds its partners in relations that
are only searched (`unidirectional`). Nothing of it is kept.

    keys_0 = keys_of(rows, 'dev')
    for e, found_1 in zip(rows, find_1(keys_0)):
        for r1 in () if found_1 is None else (found_1,):
            made.append({…})

Partners of which an event has the key are looked up for the whole batch.

Where rows are not made one by one (aggregates, order, output limits, subqueries) the loop collects the joined
rows of the event, and `change` takes them.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from sql.algebra.join.chain import JoinLoops
from sql.algebra.join.inner import parts_of
from sql.algebra.join.store import Pulled, Rows
from sql.codegen.expression_code import Code
from sql.codegen.output_rows import write_row
from sql.codegen.source import SourceWriter
from sql.compiler.statement.driving import is_looked_into, makes_rows
from sql.compiler.statement.statement_frame import StatementFrame


def stores_of(frame: StatementFrame) -> list[Rows | Pulled]:
    """The rows of each source as the text finds them. It depends on the presence of a filter alone."""
    relations = frame.catalog.relations
    return [
        Pulled(relations[source.stream], None if source.filter is None else bool)
        if is_looked_into(frame.plan, source)
        else Rows(frame.shape)
        for source in frame.plan.sources
    ]


class DrivenText:
    """Writes the loop of one join."""

    def __init__(self, frame: StatementFrame, place: int) -> None:
        self.frame = frame
        self.plan = plan = frame.plan
        self.place = place
        self.is_direct = makes_rows(plan)
        on = [join.on for join in plan.joins]
        parts = parts_of([*on, plan.where])
        self.chain = JoinLoops(parts, parts, place, stores_of(frame), looks_ahead=self._looks_ahead)

    @property
    def _looks_ahead(self) -> bool:
        """True if each event looks partners up, and relations do not change between two events."""
        driver = self.plan.sources[self.place]
        return self.is_direct and driver.filter is None and self.frame.shape == "dict"

    @property
    def makes_one(self) -> bool:
        """True if an event makes one row at most, so that the rows of a batch are handed on together."""
        return self.is_direct and self.chain.finds_one

    def write(self, source: SourceWriter) -> None:
        """The function `push`."""
        with source.block("def push(q, rows, now):"):
            source.line("fail, out, name, made = q.fail, q.out, q.name, q.made")
            if not self.is_direct:
                source.line("seq = q.seq")
            source.line(f"{', '.join(self.chain.finders)}, = q.sources.finders")
            if self.plan.subqueries:
                stream = self.plan.sources[self.place].stream
                source.line(f"takes = q.sources.subqueries.takes({stream!r})")
            with self.chain.batch(source, self.frame.names):
                if not self.makes_one:
                    source.line("found = []")
                with source.attempt("fail(e, error)"):
                    self._write_event(source)
                self._write_end(source)
        source.line("")

    def _write_event(self, source: SourceWriter) -> None:
        driver = self.plan.sources[self.place]
        if self.plan.subqueries:
            with source.block("for take in takes:"):
                source.line("take(e, now)")
        if driver.filter is not None:
            self.frame.make_loop(source, self._slots, is_one=True).skip_unless(driver.filter)
        locals_, kept = self.chain.rows() | {self.place: "e"}, self.chain.kept
        loop = self.frame.make_loop(source, self._slots, rows=locals_, kept=kept)
        if self.chain.needs_event:
            source.line(f"r{self.place} = e")
        with self.chain.each(loop) as inner:
            if not self.is_direct:
                if self.chain.rest:
                    with source.attempt(f"fail(({self._sides()}), error)", "continue"):
                        self.chain.write_test(inner)
                source.line("seq += 1")
                source.line(f"found.append(Event(({self._sides(self.frame.kept)}), now, seq))")
                return
            with source.attempt(f"fail(({self._sides()}), error)"):
                self.chain.write_test(inner)
                if self.plan.having is not None:
                    inner.skip_unless(self.plan.having)
                write_row(inner, self.plan, "made.append(" if self.makes_one else "found.append(", ")")

    def _sides(self, kept: Container[int] = ()) -> str:
        """The text of the rows of all sources; of those `kept` the rows of relations themselves."""
        rows = (
            self.chain.partner(place) if place in kept else self.chain.whole(place)
            for place in range(self.chain.width)
        )
        return ", ".join("e" if place == self.place else row for place, row in enumerate(rows))

    @property
    def _slots(self) -> dict[Any, Code]:
        return self.frame.slots("whole.", "now", "True")

    def _write_end(self, source: SourceWriter) -> None:
        """The rows of the event are one post."""
        if self.makes_one:
            return
        if self.is_direct:
            with source.block("if found:"):
                source.line("out.append(Emission(name, now, 'rows', found))")
            return
        source.line("q.seq = seq")
        source.line("q.step((Delta(found),) if found else (), now)")
        source.line("seq = q.seq")
