"""The values a group keeps of its events, so that its aggregates are known at any time.

A group is an object with slots, `g` in the text; a statement without GROUP BY has one, `whole`. An aggregate
of numbers that has statements (`sql.aggregates.inline`) keeps plain attributes; any other keeps its
accumulator. What an event contributed is remembered with the event, so that it leaves as it came whatever
variables have changed since.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cached_property
from typing import Any

from sql.aggregates import rare
from sql.aggregates.base import Accumulator, Removal
from sql.aggregates.inline import (
    COUNT,
    FINE,
    LARGE,
    NUMBERS,
    QUEUES,
    UNIT,
    UNIT_SHIFT,
    WHOLE_MAX,
    Inline,
    in_units,
    lines,
)
from sql.aggregates.plain_values import decode, encode
from sql.aggregates.structures.exact import check_number
from sql.aggregates.sums import Sum
from sql.algebra.accumulators import SKIP, is_checked, maker_of
from sql.algebra.group_slots import GroupSlot, number_slot, rest_slot
from sql.algebra.operator import FindEvent
from sql.codegen.expression_code import Code
from sql.codegen.functions import argument_text
from sql.codegen.loop import LoopWriter
from sql.plan.bound import AggregateCall, Bound
from sql.types import Saved


class Numbers:
    """The aggregates of one argument that have statements: count, sum, avg."""

    def __init__(self, place: int, forms: dict[Inline, AggregateCall]) -> None:
        """`forms`: the statements, each with the first call that needs them."""
        self.node = next(iter(forms.values())).args[0]
        self.place = place
        self.forms = list(forms)
        self.name = next((call.definition.name for form, call in forms.items() if form.is_scaled), "")
        self.is_scaled = bool(self.name)
        self.has_floats = any("floats" in form.state for form in forms)
        self.has_squares = any("squares" in form.state for form in forms)
        self.local = f"x_{place}" if self.is_scaled else f"a_{place}"
        self.remembered = [self.local, *([f"a_{place}"] if self.has_floats else [])]

    @property
    def slots(self) -> list[GroupSlot]:
        states = dict.fromkeys(state for form in self.forms for state in form.state)
        slots = [number_slot(f"{state}_{self.place}") for state in states]
        if self.is_scaled:
            kind = rare.RareMoments if self.has_squares else Sum
            slots.append(rest_slot(f"rest_{self.place}", kind))
        return slots

    def prepare(self, loop: LoopWriter) -> None:
        """The value of the event, and the same in units."""
        value, scaled = f"a_{self.place}", self.local
        loop.line(f"{value} = {loop.value(self.node)}", self.node.span)
        if not self.is_scaled:
            return
        source = loop.source
        with source.block(f"if {value}.__class__ is float:"):
            with source.block(f"if {FINE} <= {value} < {LARGE} or -{LARGE} < {value} <= -{FINE}:"):
                source.line(f"{scaled} = ({value} * {2.0**UNIT_SHIFT!r}).__trunc__()")
            with source.block("else:"):
                source.line(f"{scaled} = {loop.expressions.names.bind(in_units, 'in_units')}({value})")
        with source.block(f"elif {value}.__class__ is int:"):
            source.line(
                f"{scaled} = {value} << {UNIT_SHIFT} if -{WHOLE_MAX} < {value} < {WHOLE_MAX} else ({value},)"
            )
        with source.block("else:"):
            names = loop.expressions.names
            source.line(f"{names.bind(check_number, 'check_number')}({value}, {self.name!r})", self.node.span)
            source.line(f"{scaled} = None")

    def given(self, value: object) -> list[Any]:
        """The form in which a value is remembered."""
        local = in_units(value) if self.is_scaled and isinstance(value, int | float) else value
        return [local, *([value] if self.has_floats else [])]

    def argument(self, given: list[Any]) -> Any:
        """The value of which this is remembered; a whole number may come back as a float."""
        value = given[-1]
        if self.has_floats or not self.is_scaled or value is None:
            return value
        return value[0] if value.__class__ is tuple else value * UNIT

    def write(self, loop: LoopWriter, owner: str, *, enters: bool, prefix: str = "") -> None:
        """The statements as the value enters or leaves; `prefix` stands before the locals of
        an event that leaves."""
        source, local = loop.source, prefix + self.local
        words = self._words(owner, prefix)
        statements = [line for form in self.forms for line in (form.add if enters else form.remove)]
        with source.block(f"if {local}.__class__ is int:" if self.is_scaled else f"if {local} is not None:"):
            _write_lines(loop, statements, words)
        if self.is_scaled:
            entered = rare.moments_entered if self.has_squares else rare.sum_entered
            change = entered if enters else rare.sum_left
            name = loop.expressions.names.bind(change, change.__name__)
            with source.block(f"elif {local} is not None:"):
                source.line(f"{owner}rest_{self.place} = {name}({owner}rest_{self.place}, {local})")

    def result(self, form: Inline, owner: str, bind: Callable[[Any, str], str]) -> str:
        """The text of one of the aggregates."""
        words = self._words(owner, "")
        state = ", ".join(words[name] for name in form.state)
        plain = form.result.format(**words)
        if not self.is_scaled:
            return plain
        rest = f"{owner}rest_{self.place}"
        assert form.with_rest is not None
        other = f"{bind(form.with_rest, form.with_rest.__name__)}({rest}, {state})"
        return f"({plain}) if {rest} is None else {other}"

    def _words(self, owner: str, prefix: str) -> dict[str, str]:
        place = self.place
        return {state: f"{owner}{state}_{place}" for state in NUMBERS} | {
            "value": f"{prefix}a_{place}",
            "scaled": f"{prefix}x_{place}",
        }


class Extremes:
    """min and max of one argument, where values leave in the order they came."""

    def __init__(self, place: int, forms: dict[Inline, AggregateCall]) -> None:
        """`forms`: the statements, each with the first call that needs them."""
        self.node = next(iter(forms.values())).args[0]
        self.place = place
        self.forms = list(forms)
        self.queues = [name for form in self.forms for name in form.state]
        self.local = f"m_{place}"
        self.remembered = [self.local]

    @property
    def slots(self) -> list[GroupSlot]:
        queues = [
            GroupSlot(
                f"{name}_{self.place}",
                deque,
                lambda queue: [encode(item) for item in queue],
                lambda state, find: deque(map(decode, state)),
            )
            for name in self.queues
        ]
        return [*queues, rest_slot(f"other_{self.place}", rare.RareExtremes)]

    def prepare(self, loop: LoopWriter) -> None:
        """The value of the event; a rare one as a tuple of one."""
        local = self.local
        loop.line(f"{local} = {loop.value(self.node)}", self.node.span)
        plain = (
            f"{local}.__class__ is float and {local} == {local} "
            f"or {local}.__class__ is int or {local} is None"
        )
        with loop.source.block(f"if not ({plain}):"):
            loop.source.line(f"{local} = ({local},)")

    def given(self, value: object) -> list[Any]:
        is_plain = value is None or value.__class__ is int or (value.__class__ is float and value == value)
        return [value if is_plain else (value,)]

    def argument(self, given: list[Any]) -> Any:
        return given[0][0] if given[0].__class__ is tuple else given[0]

    def check(self, loop: LoopWriter, owner: str = "g.") -> None:
        """A value that cannot be ordered among those of its group is refused."""
        name = loop.expressions.names.bind(rare.check_extreme, "check_extreme")
        queues = "".join(f"{owner}{queue}_{self.place}, " for queue in self.queues)
        rest = f"{owner}other_{self.place}"
        with loop.source.block(f"if {self.local}.__class__ is tuple or {rest} is not None:"):
            loop.source.line(f"{name}(({queues}), {rest}, {self.local})", self.node.span)

    def write(self, loop: LoopWriter, owner: str, *, enters: bool, prefix: str = "") -> None:
        source, local, place = loop.source, prefix + self.local, self.place
        words = {name: f"{owner}{name}_{place}" for name in QUEUES} | {"value": local}
        statements = [line for form in self.forms for line in (form.add if enters else form.remove)]
        with source.block(f"if {local}.__class__ is not tuple:"), source.block(f"if {local} is not None:"):
            _write_lines(loop, statements, words)
        with source.block("else:"):
            change = rare.extreme_entered if enters else rare.extreme_left
            name = loop.expressions.names.bind(change, change.__name__)
            source.line(f"{owner}other_{place} = {name}({owner}other_{place}, {local})")

    def result(self, form: Inline, owner: str, bind: Callable[[Any, str], str]) -> str:
        words = {name: f"{owner}{name}_{self.place}" for name in QUEUES}
        with_rest = rare.lowest_with if form.state == ("low",) else rare.highest_with
        other = f"{bind(with_rest, with_rest.__name__)}({owner}other_{self.place}, {words[form.state[0]]})"
        return f"({form.result.format(**words)}) if {owner}other_{self.place} is None else {other}"


class Accumulated:
    """An aggregate without statements: what its accumulator is given."""

    def __init__(self, call: AggregateCall, place: int, removal: Removal) -> None:
        self.call = call
        self.place = place
        self.local = f"f_{place}"
        self.remembered = [self.local]
        self.make: Callable[[], Accumulator] = maker_of(call, removal)
        self.is_shared = call.group_by is not None
        """True if it has dimensions of its own: one accumulator serves the whole statement."""
        self.refuses_values = is_checked(call)
        self.is_checked = self.refuses_values or self.is_shared
        self.counts_all = call.inline is not None and call.inline.add == COUNT.add and not call.args
        """True for `count(*)`, whose number is counted in place."""

    @property
    def slots(self) -> list[GroupSlot]:
        if self.is_shared:
            return []

        def unpack(state: Saved, find: FindEvent) -> Accumulator:
            accumulator = self.make()
            accumulator.restore(state, find)
            return accumulator

        return [GroupSlot(f"acc_{self.place}", self.make, lambda accumulator: accumulator.snapshot(), unpack)]

    def owner(self, group: str) -> str:
        """The text of the accumulator."""
        return f"q.groups.shared[{self.place}]" if self.is_shared else f"{group}acc_{self.place}"

    def prepare(self, loop: LoopWriter) -> None:
        """The argument of the accumulator; SKIP where the aggregate's own filter drops the event."""
        call = self.call
        text = argument_text(loop.expressions, call.definition, call.args)
        condition = "" if call.filter is None else loop.expressions.true(call.filter)
        loop.reader.load(loop.source)
        if call.filter is None:
            loop.line(f"{self.local} = {text}", call.place)
            return
        loop.line(f"{self.local} = {loop.expressions.names.bind(SKIP, 'SKIP')}")
        with loop.source.block(f"if {condition}:", call.filter.span):
            loop.line(f"{self.local} = {text}", call.place)

    def check(self, loop: LoopWriter, owner: str = "g.") -> None:
        """Raise, before anything changes, where the accumulator cannot take the value or a further group of
        dimensions of its own."""
        if not self.is_checked:
            return
        unsure = [f"{self.local} is not SKIP"] if self.call.filter else []
        if self.call.group_by is not None:
            key = f"own_{self.place}"
            with loop.source.block(f"if {unsure[0]}:") if unsure else nullcontext():
                loop.inner().key(self.call.group_by, key)
                loop.line(f"{self.owner(owner)}.make_room({key})", self.call.place)
        if not self.refuses_values:
            return
        if self.call.inline is not None and self.call.inline.is_scaled:  # a sum, which takes every float
            unsure.append(f"{self.local}.__class__ is not float")
        with loop.source.block(f"if {' and '.join(unsure)}:") if unsure else nullcontext():
            loop.line(f"{self.owner(owner)}.check({self.local})", self.call.place)

    def write(self, loop: LoopWriter, owner: str, *, enters: bool, prefix: str = "") -> None:
        if self.call.definition.ever and not enters:
            return
        local, event, verb = prefix + self.local, ("x" if enters else "y"), ("add" if enters else "remove")
        key = f"own_{self.place}, " if self.is_shared and enters else ""  # `check` has found it
        if self.counts_all:
            loop.line(f"{self.owner(owner)}.count {'+' if enters else '-'}= 1")
            return
        with loop.source.block(f"if {local} is not SKIP:") if self.call.filter else nullcontext():
            loop.line(f"{self.owner(owner)}.{verb}({key}{local}, {event})")

    def result(self, owner: str) -> str:
        """The text of the aggregate, read at the event `x` where it has dimensions of its own."""
        if self.counts_all:
            return f"{self.owner(owner)}.count"
        return f"{self.owner(owner)}{'.at(x)' if self.is_shared else ''}.result()"


class Kept:
    """The values and accumulators kept for the aggregates of a plan."""

    def __init__(self, calls: Sequence[AggregateCall], removal: Removal, *, as_calls: bool = False) -> None:
        """`as_calls`: every aggregate keeps its accumulator."""
        numbers: dict[Bound, dict[Inline, AggregateCall]] = {}
        extremes: dict[Bound, dict[Inline, AggregateCall]] = {}
        self.calls = calls
        self.accumulated: dict[int, Accumulated] = {}
        self.counts_rows: set[int] = set()
        """The places of `count(*)`, which is the group's number of events."""
        for place, call in enumerate(calls):
            form = None if as_calls else inline_form(call, removal)
            if form is None:
                self.accumulated[place] = Accumulated(call, place, removal)
            elif not call.args:
                self.counts_rows.add(place)
            else:
                (extremes if form.is_in_order else numbers).setdefault(call.args[0], {}).setdefault(
                    form, call
                )
        self.numbers = {node: Numbers(place, mine) for place, (node, mine) in enumerate(numbers.items())}
        self.extremes = {node: Extremes(place, mine) for place, (node, mine) in enumerate(extremes.items())}

    @property
    def parts(self) -> list[Numbers | Extremes | Accumulated]:
        """The parts that keep an event's values."""
        return [*self.numbers.values(), *self.extremes.values(), *self.accumulated.values()]

    @property
    def arguments(self) -> list[Bound]:
        """The distinct arguments of the calls with statements, in their order."""
        calls = [call for place, call in enumerate(self.calls) if place not in self.accumulated]
        return list(dict.fromkeys(call.args[0] for call in calls if call.args))

    @property
    def checked(self) -> list[Extremes | Accumulated]:
        """The parts that may refuse a value because of the values in its group."""
        return [*self.extremes.values(), *(item for item in self.accumulated.values() if item.is_checked)]

    @property
    def remembered(self) -> list[str]:
        """The locals that are remembered with an event."""
        return [local for part in self.parts for local in part.remembered]

    @property
    def values(self) -> str:
        """The text of what is remembered with an event: one local itself, several as a tuple."""
        locals_ = self.remembered
        return locals_[0] if len(locals_) == 1 else f"({', '.join(locals_)})" if locals_ else "None"

    @cached_property
    def slots(self) -> list[GroupSlot]:
        """The attributes of a group."""
        return [slot for part in self.parts for slot in part.slots]

    def codes(self, owner: str, bind: Callable[[Any, str], str]) -> dict[Any, Code]:
        """The code by which rows read the aggregates."""
        found: dict[Any, Code] = {}
        for place, call in enumerate(self.calls):
            if place in self.accumulated:
                text = self.accumulated[place].result(owner)
            elif place in self.counts_rows:
                found["aggregate", place] = Code(f"{owner}n", False, False, "number")
                continue
            else:
                form = call.definition.inline
                assert form is not None
                part: Any = (self.extremes if form.is_in_order else self.numbers)[call.args[0]]
                text = f"({part.result(form, owner, bind)})"
            found["aggregate", place] = Code(text, True, False)
        return found


def inline_form(call: AggregateCall, removal: Removal) -> Inline | None:
    """The statements of a call, if it can be written into the loop."""
    form = call.inline
    return None if form is not None and form.is_in_order and removal is Removal.ANY else form


def _write_lines(loop: LoopWriter, statements: Sequence[str], words: dict[str, str]) -> None:
    for line in lines(statements):
        loop.source.line(line.format(**words))
