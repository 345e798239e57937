"""Windows that are looked at with every event: one loop that lets events in and out of running aggregates.

This file writes the loop; `every_event` holds the windows, which say when events leave. What a window shows of a change
follows the kind of the statement (`sql.runtime.changes`), or it is looked at as a whole (eKuiper's sliding window):

    plain, event, group_event    a row for the event that came
    aggregate                    a row, if something came or left
    group                        a row for each group that has changed
    look                         a row for each group

Without groups what is kept are locals of the loop; a group is an object with the same names as attributes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from sql.aggregates.inline import SHIFTS
from sql.codegen.expressions import Names
from sql.codegen.fast.arguments import Argument, Fed, unless_skipped, write_fed
from sql.codegen.fast.changes import ShowingChanges
from sql.codegen.fast.reader import LoopWriter
from sql.codegen.fast.source import SourceWriter
from sql.plan.bound import Bound, Read
from sql.types import key_of
from sql.windows.event import Event

POP = ".popleft()"


class RunningQuery(ShowingChanges):
    """Base: the loop."""

    condition: Bound | None = None
    """What keeps events out of the window altogether."""
    taking = POP
    """How what has to be remembered of the oldest event is read from its queue."""

    def _generate(self) -> Any:
        self.prepare()
        return super()._generate()

    def prepare(self) -> None:
        """Evaluate the window's parameters, before the code is written."""

    def refine(self) -> bool:
        """Count sums in the finest unit from now on."""
        scaled = [item for item in self.aggregates.arguments.values() if item.is_scaled and item.shift != SHIFTS[-1]]
        if not scaled:
            return False
        held = self.remembered()
        for item in scaled:
            item.shift = SHIFTS[-1]
        self.code = self._generate()
        self.replay(held)
        return True

    # --- what is kept -------------------------------------------------------------------------------------------------

    @property
    def queues(self) -> list[str]:
        """What there is one of for each event in the window, oldest first."""
        members = ["members"] if self.has_groups or self.has_ghosts else []
        return ["window", *members, *(part.queue for part in self.aggregates.remembered)]

    @property
    def numbers(self) -> dict[str, Any]:
        """What is kept of all events together, and how it begins."""
        serial = {"serial": int} if self.counts_events else {}
        if self.has_groups:
            return serial
        return serial | self.aggregates.beginnings | ({"n": int} if self.has_ghosts else {})

    @property
    def counts_events(self) -> bool:
        """Whether events need a number: to find the older group, or for an accumulator that looks at events."""
        return bool(self.aggregates.fed) or self.kind == "look"

    def fresh(self) -> dict[str, Any]:
        kept: dict[str, Any] = {name: self.new_queue() for name in self.queues}
        if self.has_groups:
            kept["groups"] = {}
        return kept | {name: make() for name, make in self.numbers.items()}

    def new_queue(self) -> deque[Any]:
        """An empty queue for as many entries as the window has room for."""
        return deque()

    def remembered(self) -> list[tuple[Any, int]]:
        return [(row, self.now_ms) for row in self.kept["window"]]

    # --- code ---------------------------------------------------------------------------------------------------------

    def _write(self, writer: SourceWriter, names: Names) -> None:
        names.bound |= {"key_of": key_of, "deque": deque, "first_of": attrgetter("first")}
        if self.has_groups:
            self._write_group(writer, names)
        if self.shows_old:
            self.write_show(writer)
        with writer.block("def push(events, now_ms, out):"):
            self.write_load(writer)
            writer.line("odd = None")
            self.write_start(writer)
            with writer.block("for e, now_ms in events:" if self.is_timed else "for e in events:"):
                self._write_event(writer)
            self.write_end(writer)
            self.write_store(writer)
            writer.line("return odd")

    def _write_group(self, writer: SourceWriter, names: Names) -> None:
        """The class of groups: of how many events, and what is kept of them."""
        kept: dict[str, Any] = self.aggregates.beginnings
        if self.kind == "look":
            kept |= {"rows": deque, "serials": deque, "first": int}
        with writer.block("class Group:"):
            writer.line(f"__slots__ = {('key', 'n', *kept)!r}")
            writer.line("")
            with writer.block("def __init__(self, key):"):
                writer.line("self.key = key")
                writer.line("self.n = 0")
                for name, make in kept.items():
                    text = {int: "0", deque: "deque()"}.get(make) or f"{names.bind(make, f'new_{name}')}()"
                    writer.line(f"self.{name} = {text}")
        writer.line("")

    def write_load(self, writer: SourceWriter) -> None:
        """What is kept becomes locals."""
        writer.line("kept = q.kept")
        for name in (*self.queues, *self.numbers):
            writer.line(f"{name} = kept[{name!r}]")
        if self.has_groups:
            writer.line("groups = kept['groups']")
            writer.line("get = groups.get")

    def write_store(self, writer: SourceWriter) -> None:
        """Numbers go back to where they are kept."""
        for name, make in self.numbers.items():
            if make is int:
                writer.line(f"kept[{name!r}] = {name}")

    def write_start(self, writer: SourceWriter) -> None:
        """Before the loop."""

    def write_end(self, writer: SourceWriter) -> None:
        """After the loop."""

    def write_before(self, writer: SourceWriter) -> None:
        """Before an event is looked at."""

    def write_own(self, loop: LoopWriter) -> None:
        """The window's own values of an event."""

    def write_leaving(self, writer: SourceWriter) -> None:
        """What leaves as an event enters."""

    # --- an event -----------------------------------------------------------------------------------------------------

    def _write_event(self, writer: SourceWriter) -> None:
        loop = self.loop_writer(writer, self.slots())
        self.write_before(writer)
        if self.condition is not None:
            with writer.block("try:"):
                loop.skip_unless(self.condition)
            self._write_failed(writer, "continue")
        self.write_own(loop)
        if self.has_ghosts:
            self._write_where(loop)
        else:
            self._write_values(loop)
        if self.leaves_beside or self.shows_old:
            self._write_changed(writer)
        self.write_leaving(writer)
        self._write_entering(writer)
        self.write_shown(loop)

    def _write_failed(self, writer: SourceWriter, then: str) -> None:
        with writer.block("except DATA_ERRORS as error:"):
            writer.line("fail(e, error)")
            writer.line(then)

    def _write_where(self, loop: LoopWriter) -> None:
        """WHERE: an event it drops, or that fails in it, becomes a ghost."""
        writer, where = loop.source, self.plan.where
        assert where is not None
        with writer.block("try:"):
            condition = loop.expressions.true(where)
            loop.reader.load(writer)
            loop.line(f"passes = {condition}", where.span)
        if self.is_timed and self.leaves_beside and (self.kind in ("aggregate", "group") or self.shows_old):
            # Its error comes after the rows that show what leaves because of it: too rare for statements of its own.
            with writer.block("except DATA_ERRORS:"):
                self.write_odd(writer)
        else:
            self._write_failed(writer, "passes = False" if self.plan.mode == "delta" else "continue")
        known = {loop.reader.locals[column] for column in loop.reader.loaded}
        with writer.block("if passes:"):
            self._write_values(loop)
        ghost = [part.local for part in self.aggregates.remembered if part.local not in known]
        ghost += ["g"] if self.has_groups else []
        with writer.block("else:"):
            if ghost:
                writer.line(f"{' = '.join(ghost)} = None")

    def _write_values(self, loop: LoopWriter) -> None:
        """The arguments' values and the group of an event."""
        writer = loop.source
        for argument in self.aggregates.arguments.values():
            self._write_value(loop, argument)
        for item in self.aggregates.fed.values():
            with writer.block("try:"):
                write_fed(loop, item.call, item.value)
            with writer.block("except DATA_ERRORS:"):
                self.write_odd(writer)
        if self.has_groups:
            self._write_group_of(loop)
        for item in self.aggregates.fed.values():
            self._write_check(writer, item)
        if self.aggregates.fed:
            writer.line(f"event = {self.functions.names.bind(Event, 'Event')}(e, now_ms, serial)")

    def _write_group_of(self, loop: LoopWriter) -> None:
        """The group of an event: `g`."""
        writer = loop.source
        self.write_odd_unless(loop, self.plan.group_by, lambda: loop.key(self.plan.group_by, "key"))
        writer.line("g = get(key)")
        with writer.block("if g is None:"):
            with writer.block(f"if len(groups) >= {self.plan.options.max_groups}:"):
                self.write_odd(writer)
            writer.line("g = groups[key] = Group(key)")
            if self.kind == "look":
                writer.line("g.first = serial")

    def _write_value(self, loop: LoopWriter, argument: Argument) -> None:
        """The value of an argument and its scaled form; anything but a plain number or NULL ends the loop."""
        writer, place = loop.source, argument.place
        if isinstance(argument.node, Read):
            argument.value = loop.atom(argument.node, "")
        else:
            argument.value = f"a_{place}"
            self.write_odd_unless(
                loop, [argument.node], lambda: writer.line(f"a_{place} = {loop.value(argument.node)}")
            )
        if argument.is_scaled:
            self._write_scaled(writer, argument.value, f"x_{place}", argument.shift)
        elif argument.takes_numbers:
            value = argument.value
            with writer.block(f"if {value}.__class__ is float:"), writer.block(f"if {value} != {value}:"):
                self.write_odd(writer)
            with writer.block(f"elif {value}.__class__ is not int and {value} is not None:"):
                self.write_odd(writer)

    def _write_check(self, writer: SourceWriter, item: Fed) -> None:
        """An event whose value the accumulator refuses is odd."""
        if not item.may_refuse:
            return
        with writer.block("try:"), unless_skipped(writer, item.call, item.value):
            writer.line(f"{self.owner}{item.name}.check({item.value})")
        with writer.block("except DATA_ERRORS:"):
            self.write_odd(writer)

    def _write_scaled(self, writer: SourceWriter, value: str, scaled: str, shift: int) -> None:
        """The value as a whole multiple of the unit that exact sums are counted in."""
        with writer.block(f"if {value}.__class__ is float:"):
            writer.line(f"{scaled} = {value} * {2.0**shift!r}")
            with writer.block(f"if not {scaled}.is_integer():"):
                self.write_odd(writer)
            writer.line(f"{scaled} = {scaled}.__trunc__()")  # what int() would call, without the way there
        with writer.block(f"elif {value}.__class__ is int and -{2**53} < {value} < {2**53}:"):
            writer.line(f"{scaled} = {value} << {shift}")
        with writer.block(f"elif {value} is None:"):
            writer.line(f"{scaled} = None")
        with writer.block("else:"):
            self.write_odd(writer)

    def write_odd_unless(self, loop: LoopWriter, nodes: Sequence[Bound], write: Callable[[], None]) -> None:
        """What `write` writes; an event for which the nodes cannot be evaluated is odd."""
        if all(isinstance(node, Read) for node in nodes):
            write()
            return
        with loop.source.block("try:"):
            write()
        with loop.source.block("except DATA_ERRORS:"):
            self.write_odd(loop.source)

    @staticmethod
    def write_odd(writer: SourceWriter) -> None:
        """The event at hand ends the loop."""
        writer.line("odd = (e, now_ms)")
        writer.line("break")

    def _write_changed(self, writer: SourceWriter) -> None:
        """Begin to note what this change touches: groups, or that anything was touched at all."""
        if self.shows_old:
            writer.line("old = []")
        if self.kind == "group":
            writer.line("changed = {g: e} if passes else {}" if self.has_ghosts else "changed = {g: e}")
            if self.shows_old:
                with writer.block("if changed:"):
                    writer.line("show(g, e, now_ms, old, None, False)")
        elif self.shows_old:
            writer.line("gone = []")
        elif self.kind == "aggregate" and self.has_ghosts:
            writer.line("touched = e if passes else None")

    # --- in and out ---------------------------------------------------------------------------------------------------

    def _write_entering(self, writer: SourceWriter) -> None:
        self.write_remembering(writer)
        if self.has_ghosts:
            with writer.block("if passes:"):
                self._write_taking_in(writer)
        else:
            self._write_taking_in(writer)

    def write_remembering(self, writer: SourceWriter) -> None:
        """The event enters the window."""
        writer.line("window.append(e)")
        if self.has_groups or self.has_ghosts:
            writer.line(f"members.append({'g' if self.has_groups else 'passes'})")
        for part in self.aggregates.remembered:
            writer.line(f"{part.queue}.append({part.local})")

    def _write_taking_in(self, writer: SourceWriter) -> None:
        if self.has_groups or self.has_ghosts:
            writer.line(f"{self.owner}n += 1")
        if self.kind == "look":
            writer.line("g.rows.append(e)")
            writer.line("g.serials.append(serial)")
        if self.counts_events:
            writer.line("serial += 1")
        for argument in self.aggregates.arguments.values():
            with writer.block(f"if {argument.value} is not None:"):
                for line in argument.add(self.owner):
                    writer.line(line)
        for item in self.aggregates.fed.values():
            with unless_skipped(writer, item.call, item.value):
                writer.line(f"{self.owner}{item.name}.add({item.value}, event)")

    def write_removal(self, writer: SourceWriter, *, stays: str = "") -> None:
        """The oldest event leaves; the group named by `stays` is kept even if it is empty."""
        if self.kind == "group" or self.shows_old or (self.kind == "aggregate" and self.has_ghosts):
            writer.line(f"left = window{self.taking}")
        elif self.taking == POP:
            writer.line(f"window{POP}")
        for part in self.aggregates.remembered:
            writer.line(f"{part.left} = {part.queue}{self.taking}")
        if self.has_groups or self.has_ghosts:
            writer.line(f"h = members{self.taking}")
        self.write_taking_out(writer, stays)

    def write_taking_out(self, writer: SourceWriter, stays: str) -> None:
        """What has been read of the event that leaves is taken out of the group `h`, or of the whole."""
        if self.has_ghosts:
            with writer.block("if h is not None:" if self.has_groups else "if h:"):
                self._write_taken_out(writer, stays)
        else:
            self._write_taken_out(writer, stays)

    def _write_taken_out(self, writer: SourceWriter, stays: str) -> None:
        owner = "h." if self.has_groups else ""
        if self.kind == "group" and self.shows_old:
            with writer.block("if h not in changed:"):
                writer.line("changed[h] = left")
                writer.line("show(h, left, now_ms, old, None, False)")
        elif self.kind == "group":
            writer.line("changed.setdefault(h, left)")
        elif self.shows_old:
            writer.line(f"gone.append(({'h' if self.has_groups else 'None'}, left))")
        if self.has_groups or self.has_ghosts:
            writer.line(f"{owner}n -= 1")
        for argument in self.aggregates.arguments.values():
            with writer.block(f"if left_{'' if argument.is_plain else 'x_'}{argument.place} is not None:"):
                for line in argument.remove(owner):
                    writer.line(line)
        for item in self.aggregates.fed.values():
            with unless_skipped(writer, item.call, item.left):
                writer.line(f"{owner}{item.name}.remove({item.left}, left_event)")
        if self.kind == "look":
            writer.line("h.rows.popleft()")
            writer.line("h.serials.popleft()")
        if self.has_groups:
            with writer.block(f"if not h.n{f' and h is not {stays}' if stays else ''}:"):
                writer.line("del groups[h.key]")
            if self.kind == "look":
                with writer.block("else:"):
                    writer.line("h.first = h.serials[0]")
        if self.kind == "aggregate" and self.has_ghosts:
            with writer.block("if touched is None:"):
                writer.line("touched = left")
