"""The statements by which an event enters a folded group: its values wait in the group's list,
or are fed to its accumulators."""

from __future__ import annotations

from collections.abc import Sequence

from sql.aggregates.wrap import Remaining
from sql.algebra.accumulators import is_checked
from sql.algebra.event import Event
from sql.algebra.sample.aggregate_calls import unless_skipped, write_fed
from sql.algebra.sample.folding.group_fold import GroupFold
from sql.algebra.sample.text import Loop
from sql.plan.bound import Bound

PLACE = Remaining(0, 0)
"""The place of each event where no aggregate reads the event."""


class FoldingText:
    """Writes how an event enters its group. `room`: the condition on which the loop may open one."""

    def __init__(self, fold: GroupFold, loop: Loop, room: str) -> None:
        self.fold = fold
        self.loop = loop
        self.room = room
        self.entry = fold.entries.text

    def write(self, group_by: Sequence[Bound]) -> None:
        """The statements of one event."""
        fold, loop = self.fold, self.loop
        loop.key(group_by, "key")
        loop.common_lines = loop.source.line_count
        values = [loop.named(node, f"a_{place}") for place, node in enumerate(fold.arguments)]
        tests = [f"({test})" for test in self._number_tests(values)]
        values = values or ["1"] * fold.width
        if fold.accumulated:
            self._write_fed(values, tests)
        elif tests:
            with loop.block(f"if {' and '.join(tests)}:"):
                self._write_found(values)
            with loop.block("else:"):
                loop.line(f"core.folded.admit(p, key, {self.entry}, ({', '.join(values)},))")
        else:
            self._write_found(values)

    def _number_tests(self, values: list[str]) -> list[str]:
        """Conditions under which the values may wait: numbers, or anything but NULL where
        they are only counted."""
        return [
            f"{value} is not None" if anything else f"{value}.__class__ is float or {value}.__class__ is int"
            for value, anything in zip(values, self.fold.takes_any, strict=False)
        ]

    def _write_append(self, values: list[str]) -> None:
        many = ", ".join(values)
        self.loop.line(f"group.append({many})" if len(values) == 1 else f"group.extend(({many},))")

    def _write_found(self, values: list[str]) -> None:
        loop, many = self.loop, ", ".join(values)
        groups = loop.own("groups")
        loop.line(f"group = {groups}.get(key)")
        with loop.block("if group is not None:"):
            self._write_append(values)
        with loop.block(f"elif {self.room}:"):
            loop.line(f"{groups}[key] = [{self.entry}, {many}]")
        with loop.block("else:"):
            loop.line(f"core.folded.open(p, key, {self.entry}, ({many},))")

    def _write_fed(self, values: list[str], tests: list[str]) -> None:
        fold, loop = self.fold, self.loop
        for place, call in enumerate(fold.accumulated):
            write_fed(loop, call, f"f_{place}")
        if fold.needs_event:
            loop.line(f"event = {loop.names.bind(Event, 'Event')}(e, at, core.next_number())")
        else:
            loop.names.bind(PLACE, "PLACE")
        event = "event" if fold.needs_event else "PLACE"
        loop.line(f"group = {loop.own('groups')}.get(key)")
        with loop.block(f"if {' and '.join(['group is not None', *tests])}:"):
            self._write_feed(values, event)
        with loop.block("else:"):
            accumulated = "".join(f"f_{place}, " for place in range(len(fold.accumulated)))
            numbers = "".join(f"{value}, " for value in values)
            loop.line(f"core.folded.feed(p, key, {self.entry}, ({numbers}), ({accumulated}), {event})")

    def _write_feed(self, values: list[str], event: str) -> None:
        """All or nothing: an accumulator that may refuse its value checks it before any takes its own."""
        fold, loop = self.fold, self.loop
        loop.line("accumulators = group.accumulators")
        first = len(fold.definitions)
        for place, call in enumerate(fold.accumulated):
            if len(fold.order) > 1 and is_checked(call):
                with unless_skipped(loop, call, f"f_{place}"):
                    loop.line(f"accumulators[{first + place}].check(f_{place})")
        if values:
            self._write_append(values)
        for place, call in enumerate(fold.accumulated):
            with unless_skipped(loop, call, f"f_{place}"):
                loop.line(f"accumulators[{first + place}].add(f_{place}, {event})")
