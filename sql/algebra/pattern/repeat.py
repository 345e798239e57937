"""`[n] a` and `[low:high] a until b`: repetitions, whose tags become lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from typing import Any

from sql.algebra.pattern.listening import Binding
from sql.algebra.pattern.nodes import Parent, PatternInstance, PatternPart, packed, unpacked
from sql.algebra.pattern.snapshot import Packer, Unpacker
from sql.types import Saved

Count = Callable[[Binding], int | None]


RepeatState = tuple[
    int, tuple[int | None, int | None], int, list[tuple[int, list[int]]], Saved | None, Saved | None
]
"""The binding, the bounds, the matches, the rows by tag, the states of the operand and of the stop."""


class RepeatSearch(PatternInstance, Parent):
    """A repetition that has begun. The stop is started first, so an event that fits both
    stops and is not counted."""

    __slots__ = ("high", "is_starting", "lists", "low", "matcher", "matches", "stop")

    def __init__(self, node: RepeatNode, parent: Parent, binding: Binding) -> None:
        super().__init__(node, parent, binding)
        self.low: int | None = None
        self.high: int | None = None
        self.matches = 0
        self.lists: dict[int, list[Any]] = {}
        """The rows met, by tag."""
        self.matcher: PatternInstance | None = None
        self.stop: PatternInstance | None = None
        self.is_starting = False
        """True while the operand is being started."""

    def start(self) -> None:
        node = self.node
        evaluate = self.machine.evaluate
        self.low = self.high = None if node.low is None else evaluate(node.low, self.binding)
        if node.high is not node.low:
            self.high = None if node.high is None else evaluate(node.high, self.binding)
        if self.low is not None and self.high is not None and self.low > self.high:
            self.low, self.high = self.high, self.low
        if node.until is not None:
            stop = self.stop = node.until.make(self, self.binding)
            stop.start()
        if self.parent is not None:
            self._search()

    def _search(self) -> None:
        """Start the operand; while it is true as it starts, as often as is wanted. Without a bound that
        would never end: as under `every`, it is not started again."""
        is_wanted = True
        while is_wanted:
            before = self.matches
            matcher = self.matcher = self.node.operand.make(self, self.binding)
            self.is_starting = True
            matcher.start()
            self.is_starting = False
            is_over = self.parent is not None and self.matcher is None and self.matches > before
            most = self.low or 0 if self.high is None else self.high
            is_wanted = is_over and self.matches < most

    def on_true(self, child: PatternInstance, binding: Binding, *, over: bool) -> None:
        if self.parent is None:
            return
        if child is self.matcher:
            self._counted(binding, over=over)
        elif child is self.stop:
            if over:
                self.stop = None
            self._stopped(binding)

    def _counted(self, binding: Binding, *, over: bool) -> None:
        """One more match: the end if so many are wanted exactly, else on with the search
        until `high` is reached."""
        self.matches += 1
        self._collect(binding)
        if over:
            self.matcher = None
        if self.matches == self.low == self.high:
            self._end_true(binding)
        elif self.high is not None and self.matches >= self.high:
            if self.matcher is not None:
                self.matcher.quit()
                self.matcher = None
        elif self.matcher is None and not self.is_starting:
            self._search()

    def _collect(self, binding: Binding) -> None:
        most = self.machine.options.max_pattern_rows
        for tag in self.node.tags:
            value = binding[tag]
            if value is None:
                continue
            rows = self.lists.setdefault(tag, [])
            rows.extend(value if value.__class__ is list else (value,))
            if len(rows) > most:
                self.machine.counts["remembered_dropped"] += len(rows) - most
                del rows[most:]

    def _stopped(self, binding: Binding) -> None:
        if self.low is not None and self.matches < self.low:
            self.fail()
        else:
            self._end_true(binding)

    def _end_true(self, binding: Binding) -> None:
        parent = self.parent
        assert parent is not None
        values = list(binding)
        for tag in self.node.tags:
            values[tag] = self.lists.get(tag, self.binding[tag])
        self.quit()
        parent.on_true(self, tuple(values), over=True)

    def on_false(self, child: PatternInstance, *, restartable: bool = True) -> None:
        if child is self.matcher:
            self.matcher = None
        elif child is self.stop:
            self.stop = None
        else:
            return
        self.fail()

    def holds(self, events: Set[int]) -> bool:
        return super().holds(events) or any(id(row) in events for rows in self.lists.values() for row in rows)

    def below(self) -> Iterable[PatternInstance]:
        return [child for child in (self.stop, self.matcher) if child is not None]

    def pack(self, packer: Packer) -> RepeatState:
        lists = [(tag, packer.rows(rows)) for tag, rows in self.lists.items()]
        matcher, stop = packed(self.matcher, packer), packed(self.stop, packer)
        return packer.binding(self.binding), (self.low, self.high), self.matches, lists, matcher, stop

    def unpack(self, state: RepeatState, unpacker: Unpacker) -> None:
        binding, (self.low, self.high), self.matches, lists, matcher, stop = state
        self.binding = unpacker.binding(binding)
        self.lists = {tag: unpacker.rows(rows) for tag, rows in lists}
        self.matcher = unpacked(self.node.operand, self, matcher, unpacker)
        self.stop = unpacked(self.node.until, self, stop, unpacker)


class RepeatNode(PatternPart):
    """A repetition of `operand`, stopped by `until` or by its bounds."""

    instance = RepeatSearch
    operand: PatternPart
    until: PatternPart | None
    low: Count | None
    high: Count | None
    tags: tuple[int, ...]
