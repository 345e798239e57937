"""The text of a join whose joined rows are not kept: each row is made as its events come, and none is taken
back. In the text `y0`, `y1`, … are events of the sources and `r0`, `r1`, … their rows.

Where one stream drives the join and the others are only looked up, each event finds its partners where it
arrives. Those of which it has the key are looked up for the whole batch:

    for r0, found_0_1 in zip(rows, find_0_1(keys_0)):
        for r1 in () if found_0_1 is None else (found_0_1,):
            made.append({…})

If rows are not made one by one (aggregates, order, output limits, subqueries), the loop collects the joined
rows of the event, and `change` takes them. In every other join an event enters the windows of its sources
first, then `join` makes the rows of what came, and of what an outer join shows where the last partner has
gone:

    for y0 in came_0:
        r0 = y0.row
        for y1 in find_0_1(key, ()):
            r1 = y1.row
            found.append({…})
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sql.algebra.join.chain import JoinLoops
from sql.algebra.join.inner import parts_of
from sql.algebra.join.store import Pulled, Rows
from sql.codegen.expression_code import Code
from sql.codegen.loop import LoopWriter
from sql.codegen.output_rows import write_row
from sql.codegen.source import SourceWriter
from sql.compiler.statement.driving import is_looked_into, makes_rows
from sql.compiler.statement.statement_frame import StatementFrame
from sql.plan.clauses import is_outer


def stores_of(frame: StatementFrame) -> list[Rows | Pulled]:
    """The rows of each source as the text finds them. It depends on the presence of a filter alone."""
    relations = frame.catalog.relations
    return [
        Pulled(relations[source.stream], None if source.filter is None else bool)
        if is_looked_into(frame.plan, source)
        else Rows(frame.shape)
        for source in frame.plan.sources
    ]


class JoinText:
    """Writes the loops of one join."""

    def __init__(self, frame: StatementFrame) -> None:
        self.frame = frame
        self.plan = plan = frame.plan
        self.width = len(plan.sources)
        self.is_outer = is_outer(plan.joins)
        self.keeps = [
            any(join.keeps_left for join in plan.joins),
            any(join.keeps_right for join in plan.joins),
        ]
        """For each side of an outer join: True if its rows without a partner are joined with NULL."""
        self.drivers = plan.drivers
        self.kept = [
            place
            for place, source in enumerate(plan.sources)
            if place not in self.drivers and not is_looked_into(plan, source)
        ]
        """The sources whose rows the join keeps."""
        self.starts = self.drivers or self.kept
        """The sources whose events make rows."""
        self.looks_up = frame.is_driven
        """True if events of one stream find their partners where they arrive."""
        self.makes_rows = makes_rows(plan)
        # Relations do not change between two events of a batch whose joined rows are made at once.
        is_filtered = plan.sources[self.starts[0]].filter is not None
        looks_ahead = self.looks_up and self.makes_rows and frame.shape == "dict" and not is_filtered
        reads = [item.value for item in plan.items] if looks_ahead else None
        on = [join.on for join in plan.joins]
        parts = parts_of(on if self.is_outer else [*on, plan.where])
        self.chains = {
            start: JoinLoops(parts, parts, start, stores_of(frame), reads=reads) for start in self.starts
        }
        streams = list(dict.fromkeys(source.stream for source in plan.sources if source.relation is None))
        self.loops = {
            stream: f"push_{place}" if streams[1:] else "push" for place, stream in enumerate(streams)
        }
        """The functions that take events, by stream."""

    def write(self, source: SourceWriter) -> None:
        """The functions."""
        if self.looks_up:
            (start,) = self.starts
            self._write_driven(source, start, self.chains[start])
            return
        for stream, name in self.loops.items():
            self._write_push(source, stream, name)
        self._write_join(source)

    # --- events that look their partners up -----------------------------------------------------------------

    def _write_driven(self, source: SourceWriter, start: int, chain: JoinLoops) -> None:
        makes_one = self.makes_rows and chain.finds_one
        # Where an event makes one row at most, the rows of a batch are handed on together.
        rows = "made" if makes_one else "found"
        ((stream, name),) = self.loops.items()
        with source.block(f"def {name}(q, rows, now):"):
            source.line("fail, out, name, made = q.fail, q.out, q.name, q.made")
            if not self.makes_rows:
                source.line("seq = q.seq")
            source.line(f"{', '.join(chain.finders)}, = q.sources.joined.finders")
            if self.plan.subqueries:
                source.line(f"takes = q.sources.subqueries.takes({stream!r})")
            with chain.batch(source, self.frame.names):
                if not makes_one:
                    source.line("found = []")
                with source.attempt(f"fail(r{start}, error)"):
                    self._write_partners(source, start, chain, rows)
                if not self.makes_rows:
                    source.line("q.seq = seq")
                    source.line("q.step((Delta(found),) if found else (), now)")
                    source.line("seq = q.seq")
                elif not makes_one:
                    with source.block("if found:"):
                        source.line("out.append(Emission(name, now, 'rows', found))")
        source.line("")

    def _write_partners(self, source: SourceWriter, start: int, chain: JoinLoops, rows: str) -> None:
        """The joined rows of the event `r<start>`, or the rows of the output, go to the list `rows`."""
        if self.plan.subqueries:
            with source.block("for take in takes:"):
                source.line(f"take(r{start}, now)")
        self._filter_loop(source, f"r{start}").skip_unless(self.plan.sources[start].filter)
        with chain.each(self._loop(source, chain)) as inner:
            if self.makes_rows:
                self._write_row(inner, rows, chain)
                return
            self._write_tested(inner, chain)
            source.line("seq += 1")
            source.line(f"{rows}.append(Event(({chain.sides(self.frame.kept)}), now, seq))")

    # --- arrivals -------------------------------------------------------------------------------------------

    def _write_push(self, source: SourceWriter, stream: str, name: str) -> None:
        places = [
            place
            for place, item in enumerate(self.plan.sources)
            if item.stream == stream and item.relation is None
        ]
        with source.block(f"def {name}(q, rows, now):"):
            source.line("fail, out, name, seq = q.fail, q.out, q.name, q.seq")
            windowed = [place for place in places if self.plan.sources[place].windows]
            if windowed:
                times = f" * {len(windowed)}" if windowed[1:] else ""
                source.line(f"is_roomy = q.budget.takes(len(rows){times})")
            for place in windowed:
                source.line(f"enter_{place} = q.windows[{place}].entry")
            for place in places:
                if place in self.kept:
                    source.line(f"rows_{place} = q.sources.joined.stores[{place}]")
            own = self._sides(place for place in places if place in self.starts)
            with source.block("for e in rows:"):
                if own:
                    source.line(f"{' = '.join(own)} = ()")
                for place in places:
                    self._write_arrival(source, place)
                if own:
                    came = ", ".join(side if side in own else "()" for side in self._sides(self.starts))
                    source.line("new = []")
                    source.line(f"join(q, {came}, now, new)")
                    with source.block("if new:"):
                        source.line("out.append(Emission(name, now, 'rows', new))")
            source.line("q.seq = seq")
        source.line("")

    def _sides(self, places: Iterable[int]) -> list[str]:
        """The names of the events that came, and in an outer join of those that have gone."""
        sides = ("came", "gone") if self.is_outer else ("came",)
        return [f"{side}_{place}" for place in places for side in sides]

    def _write_arrival(self, source: SourceWriter, place: int) -> None:
        """The event enters the windows of one source."""
        plan = self.plan.sources[place]
        source.line("seq += 1")
        with source.attempt("fail(e, error)"):
            if plan.filter is None:
                self._write_entered(source, place)
            else:
                condition = self._filter_loop(source, "e").true(plan.filter)
                with source.block(f"if {condition}:", plan.filter.span):
                    self._write_entered(source, place)

    def _write_entered(self, source: SourceWriter, place: int) -> None:
        if self.plan.sources[place].windows:
            with source.block("if not is_roomy:"):
                source.line("q.budget.admit()")
            source.line("x = Event(e, now, seq)")
            source.line(f"left = enter_{place}(x, now)")
            with source.block("if left is not None:"):
                self._write_came(source, place)
                if self.is_outer and place in self.starts:
                    source.line(f"gone_{place} = left")
                with source.block("for y in left:"):
                    source.line(f"rows_{place}.remove(y)")
            return
        source.line("x = Event(e, now, seq)")
        self._write_came(source, place)

    def _write_came(self, source: SourceWriter, place: int) -> None:
        if place in self.starts:
            source.line(f"came_{place} = (x,)")
        if place in self.kept:
            source.line(f"rows_{place}.add(x)")

    # --- the join -------------------------------------------------------------------------------------------

    def _write_join(self, source: SourceWriter) -> None:
        with source.block(f"def join(q, {', '.join(self._sides(self.starts))}, now, found):"):
            source.line("fail = q.fail")
            finders = [name for chain in self.chains.values() for name in chain.finders]
            source.line(f"{', '.join(finders)}{'' if finders[1:] else ','} = q.sources.joined.finders")
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
        shows_alone = self.is_outer and self.keeps[start]
        came = f"(*came_{start}, *bare_{start})" if uncovers else f"came_{start}"
        with source.block(f"for y{start} in {came}:"):
            if self.is_outer and start in self.kept:
                with source.block(f"if y{start} in gone_{start}:"):
                    source.line("continue")
            if shows_alone:
                source.line("is_alone = True")
            with self._chained(source, start) as inner:
                if shows_alone:
                    source.line("is_alone = False")
                if uncovers:
                    with source.block(f"if y{start} in bare_{start}:"):
                        source.line("break")
                shown = [f"y{place} in came_{place}" for place in self.starts if place < start]
                if shown:  # by another source
                    with source.block(f"if {' or '.join(shown)}:"):
                        source.line("continue")
                self._write_row(inner)
            if shows_alone:
                with source.block("if is_alone:"):
                    source.line(f"r{1 - start} = None")
                    self._write_row(self._loop(source, self.chains[start], nullable=(1 - start,)))

    @contextmanager
    def _chained(self, source: SourceWriter, start: int) -> Iterator[LoopWriter]:
        """For each joined row of an event: what is written inside, with the writer that is given."""
        chain = self.chains[start]
        loop = self._loop(source, chain)
        with source.attempt(f"fail(r{start}, error)", "continue"):
            source.line(f"r{start} = y{start}.row")
            with chain.each(loop) as inner:
                self._write_tested(inner, chain)
                yield inner

    # --- joined rows ----------------------------------------------------------------------------------------

    def _loop(self, source: SourceWriter, chain: JoinLoops, nullable: Sequence[int] = ()) -> LoopWriter:
        rows, kept = chain.rows(), chain.kept
        return self.frame.make_loop(source, self._slots, rows=rows, nullable=nullable, kept=kept)

    def _filter_loop(self, source: SourceWriter, row: str) -> LoopWriter:
        """A writer of conditions on the row of one source."""
        return self.frame.make_loop(source, self._slots, rows=dict.fromkeys(range(self.width), row))

    def _write_tested(self, loop: LoopWriter, chain: JoinLoops) -> None:
        """Go on with the next joined row where conditions that no index settles do not hold."""
        if chain.rest:
            with loop.source.attempt(self._failed(loop), "continue"):
                chain.write_test(loop)

    def _write_row(self, loop: LoopWriter, rows: str = "found", chain: JoinLoops | None = None) -> None:
        """The row of the output; with a `chain` after the conditions that no index settles."""
        with loop.source.attempt(self._failed(loop)):
            if chain is not None:
                chain.write_test(loop)
            if self.is_outer:
                loop.skip_unless(self.plan.where)
            loop.skip_unless(self.plan.having)
            write_row(loop, self.plan, f"{rows}.append(", ")")

    def _failed(self, loop: LoopWriter) -> str:
        """A joined row cannot be evaluated: it is an error event, and the others go on."""
        rows = ", ".join(loop.reader.row(place).text for place in range(self.width))
        return f"fail(({rows}), error)"

    @property
    def _slots(self) -> dict[Any, Code]:
        return self.frame.slots("whole.", "now", "True")
