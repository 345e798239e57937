"""The text of a join whose joined rows are not kept: each is a row of the output as it stands, and none is
taken back.

    push_0(q, rows, now)                   events of one stream: each enters its windows,
                                           then the join changes
    join(q, came_0, gone_0, …, now, found) all sources have changed: the rows of what came, and those that an
                                           outer join shows where the last partner has gone

In the text `y0`, `y1`, … are events of the sources and `r0`, `r1`, … their rows.

    for y0 in came_0:
        add_0(y0)
    …
    for y0 in came_0:
        r0 = y0.row
        for y1 in find_0_1(key, ()):
            r1 = y1.row
            found.append({…})
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sql.algebra.join.chain import JoinLoops
from sql.algebra.join.inner import parts_of
from sql.algebra.join.passing import opened_names
from sql.codegen.expression_code import Code
from sql.codegen.loop import LoopWriter
from sql.codegen.output_rows import write_row
from sql.codegen.source import SourceWriter
from sql.compiler.statement.driving import is_looked_into
from sql.compiler.statement.joins.driven import stores_of
from sql.compiler.statement.statement_frame import StatementFrame


class PassingText:
    """Writes the loops of one join."""

    def __init__(self, frame: StatementFrame) -> None:
        self.frame = frame
        self.plan = plan = frame.plan
        self.width = len(plan.sources)
        kinds = {join.kind for join in plan.joins}
        self.is_outer = bool(kinds & {"left", "right", "full"})
        self.keeps = [bool(kinds & {"left", "full"}), bool(kinds & {"right", "full"})]
        """For each side of an outer join: True if its rows without a partner are joined with NULL."""
        self.drivers = [place for place, source in enumerate(plan.sources) if source.unidirectional]
        self.starts = self.drivers or list(range(self.width))
        """The sources whose events make rows."""
        self.kept = [
            place
            for place, source in enumerate(plan.sources)
            if place not in self.drivers and not is_looked_into(plan, source)
        ]
        """The sources whose rows the join keeps."""
        stores = stores_of(frame)
        on = [join.on for join in plan.joins]
        parts = parts_of(on if self.is_outer else [*on, plan.where])
        self.chains = [JoinLoops(parts, parts, start, stores, f"find_{start}") for start in self.starts]
        streams = [source.stream for source in plan.sources if source.relation is None]
        self.loops = {stream: f"push_{streams.index(stream)}" for stream in streams}
        """The functions that take events, by stream."""

    def write(self, source: SourceWriter) -> None:
        """The functions."""
        for stream, name in self.loops.items():
            self._write_push(source, stream, name)
        self._write_join(source)

    # --- arrivals -------------------------------------------------------------------------------------------

    def _write_push(self, source: SourceWriter, stream: str, name: str) -> None:
        places = [
            place
            for place, item in enumerate(self.plan.sources)
            if item.stream == stream and item.relation is None
        ]
        sides = {f"{side}_{place}" for place in places for side in ("came", "gone")}
        with source.block(f"def {name}(q, rows, now):"):
            source.line("fail, out, name, seq = q.fail, q.out, q.name, q.seq")
            windowed = [place for place in places if self.plan.sources[place].windows]
            if windowed:
                times = f" * {len(windowed)}" if windowed[1:] else ""
                source.line(f"is_roomy = q.budget.takes(len(rows){times})")
            for place in windowed:
                source.line(f"enter_{place} = q.windows[{place}].enter")
            with source.block("for e in rows:"):
                source.line(f"{' = '.join(sorted(sides))} = ()")
                for place in places:
                    self._write_arrival(source, place)
                arguments = ", ".join(text if text in sides else "()" for text in self._sides())
                source.line("new = []")
                source.line(f"join(q, {arguments}, now, new)")
                with source.block("if new:"):
                    source.line("out.append(Emission(name, now, 'rows', new))")
            source.line("q.seq = seq")
        source.line("")

    def _sides(self) -> Iterator[str]:
        for place in range(self.width):
            yield from (f"came_{place}", f"gone_{place}")

    def _write_arrival(self, source: SourceWriter, place: int) -> None:
        """The event enters the windows of one source."""
        plan = self.plan.sources[place]
        source.line("seq += 1")
        with source.attempt("fail(e, error)"):
            if plan.filter is None:
                self._write_entered(source, place)
            else:
                loop = self.frame.make_loop(source, self._slots, is_one=True)
                condition = loop.expressions.true(plan.filter)
                loop.reader.load(source)
                with source.block(f"if {condition}:", plan.filter.span):
                    self._write_entered(source, place)

    def _write_entered(self, source: SourceWriter, place: int) -> None:
        if not self.plan.sources[place].windows:
            source.line(f"came_{place} = (Event(e, now, seq),)")
            return
        with source.block("if not is_roomy:"):
            source.line("q.budget.admit()")
        source.line("x = Event(e, now, seq)")
        source.line(f"left = enter_{place}(x, now)")
        with source.block("if left is not None:"):
            source.line(f"came_{place}, gone_{place} = (x,), left")

    # --- the join -------------------------------------------------------------------------------------------

    def _write_join(self, source: SourceWriter) -> None:
        with source.block(f"def join(q, {', '.join(self._sides())}, now, found):"):
            source.line("fail = q.fail")
            names = opened_names(self.kept, self.chains)
            source.line(f"{', '.join(names)}{'' if names[1:] else ','} = q.sources.joined.opened")
            for verb, side in (("add", "came"), ("remove", "gone")):
                for place in self.kept:
                    with source.block(f"for y{place} in {side}_{place}:"):
                        source.line(f"{verb}_{place}(y{place})")
            for start in self.starts:
                if self._uncovers(start):
                    self._write_bare(source, start)
            for start in self.starts:
                self._write_rows_of(source, start)
        source.line("")

    def _uncovers(self, place: int) -> bool:
        """True if rows of a side show anew beside NULL where their last partner has gone."""
        return self.is_outer and self.keeps[place] and len(self.kept) == 2

    def _write_bare(self, source: SourceWriter, place: int) -> None:
        """The rows of a side that have lost a partner, which they may still have others beside."""
        other = 1 - place
        source.line(f"bare_{place} = {{}}")
        with source.block(f"for y{other} in gone_{other}:"):
            with source.block(f"if y{other} in came_{other}:"):
                source.line("continue")
            with self._chained(source, other), source.block(f"if y{place} not in came_{place}:"):
                source.line(f"bare_{place}[y{place}] = None")

    def _write_rows_of(self, source: SourceWriter, start: int) -> None:
        """The joined rows of the events of one source that came."""
        uncovers = self._uncovers(start)
        shows_alone = self.is_outer and self.keeps[start] and (bool(self.drivers) or len(self.kept) == 2)
        came = f"(*came_{start}, *bare_{start})" if uncovers else f"came_{start}"
        chain = self.chains[self.starts.index(start)]
        with source.block(f"for y{start} in {came}:"):
            if self.is_outer and start in self.kept:
                with source.block(f"if y{start} in gone_{start}:"):
                    source.line("continue")
            if shows_alone:
                source.line("is_alone = True")
            with self._chained(source, start) as inner:
                if shows_alone:
                    inner.source.line("is_alone = False")
                self._write_skips(source, start, uncovers)
                self._write_row(inner)
            if shows_alone:
                with source.block("if is_alone:"):
                    source.line(f"r{1 - start} = None")
                    self._write_row(self._loop(source, chain, nullable=(1 - start,)))

    def _write_skips(self, source: SourceWriter, start: int, uncovers: bool) -> None:
        """Rows that were there, and those that another source has shown."""
        tests = [f"y{place} in came_{place}" for place in self.starts if place < start]
        if uncovers:
            tests.append(f"y{start} in bare_{start}")
        if tests:
            with source.block(f"if {' or '.join(tests)}:"):
                source.line("continue")

    @contextmanager
    def _chained(self, source: SourceWriter, start: int) -> Iterator[LoopWriter]:
        """For each joined row of an event: what is written inside, with the writer that is given."""
        chain = self.chains[self.starts.index(start)]
        loop = self._loop(source, chain)
        with source.attempt(f"fail(r{start}, error)", "continue"):
            source.line(f"r{start} = y{start}.row")
            with chain.each(loop) as inner:
                if chain.rest:
                    with source.block("try:"):
                        chain.write_test(inner)
                    self._write_failed(inner, "continue")
                yield inner

    def _loop(self, source: SourceWriter, chain: JoinLoops, nullable: Sequence[int] = ()) -> LoopWriter:
        rows, kept = chain.rows(), chain.kept
        return self.frame.make_loop(source, self._slots, rows=rows, nullable=nullable, kept=kept)

    def _write_row(self, loop: LoopWriter) -> None:
        source = loop.source
        with source.block("try:"):
            if self.is_outer:
                loop.skip_unless(self.plan.where)
            loop.skip_unless(self.plan.having)
            write_row(loop, self.plan, "found.append(", ")")
        self._write_failed(loop)

    def _write_failed(self, loop: LoopWriter, then: str = "") -> None:
        """A joined row cannot be evaluated: it is an error event, and the others go on."""
        source = loop.source
        with source.block("except DATA_ERRORS as error:"):
            rows = ", ".join(loop.reader.read(place, None).text for place in range(self.width))
            source.line(f"fail(({rows}), error)")
            if then:
                source.line(then)

    @property
    def _slots(self) -> dict[Any, Code]:
        return self.frame.slots("whole.", "now", "True")
