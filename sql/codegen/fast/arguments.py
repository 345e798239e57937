"""What a running loop keeps of a set of events, so that its aggregates can be told at any time.

The set is the whole window, whose names are locals of the loop, or one group, whose names are attributes of a group
object (`owner` is what is written before a name). An aggregate of numbers that has statements (`sql.aggregates.inline`)
is written into the loop; any other keeps its accumulator, the one the operators use.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from sql.aggregates.base import Removal
from sql.aggregates.inline import QUEUES, SHIFTS, Inline, lines
from sql.codegen.fast.reader import LoopWriter
from sql.codegen.fast.source import SourceWriter
from sql.codegen.functions import argument_text
from sql.plan.bound import AggregateCall, Bound
from sql.runtime.groups import SKIP, is_checked, maker_of


class Remembered(NamedTuple):
    """A queue of the window, the local that goes into it as an event enters, and the one it goes to as it leaves."""

    queue: str
    local: str
    left: str


class Argument:
    """One distinct argument of aggregates that have statements: the locals of its value, and what is kept for it."""

    def __init__(self, node: Bound, place: int, forms: Sequence[Inline]) -> None:
        self.node = node
        self.place = place
        self.value = f"a_{place}"
        """The local that has the value of the event at hand."""
        self.forms = list(dict.fromkeys(forms))
        self.is_scaled = any(form.is_scaled for form in forms)
        self.is_plain = any(form.reads_left for form in forms) or not self.is_scaled
        """Whether the values themselves are remembered, beside or instead of the scaled ones."""
        self.takes_numbers = any(form.is_scaled or form.reads_left for form in forms)
        """Whether the values have to be numbers: what is only counted may be anything."""
        self.shift = SHIFTS[0]

    @property
    def remembered(self) -> list[Remembered]:
        """What has to be known again when the event leaves."""
        place = self.place
        values = [Remembered(f"values_{place}", self.value, f"left_{place}")] if self.is_plain else []
        return values + ([Remembered(f"scaled_{place}", f"x_{place}", f"left_x_{place}")] if self.is_scaled else [])

    @property
    def kept(self) -> dict[str, Callable[[], Any]]:
        """What is kept: names, and how each begins."""
        states = dict.fromkeys(state for form in self.forms for state in form.state)
        return {f"{state}_{self.place}": deque if state in QUEUES else int for state in states}

    def add(self, owner: str) -> list[str]:
        """Statements that take the event's value in, which is not NULL."""
        return self._written((statement for form in self.forms for statement in form.add), owner)

    def remove(self, owner: str) -> list[str]:
        """Statements that take out the value of an event that leaves."""
        return self._written((statement for form in self.forms for statement in form.remove), owner)

    def result(self, form: Inline, owner: str) -> str:
        """The value of one of the aggregates."""
        return form.result.format(**self._words(owner))

    def _written(self, statements: Iterable[str], owner: str) -> list[str]:
        words = self._words(owner)
        return [line.format(**words) for line in lines(statements)]

    def _words(self, owner: str) -> dict[str, str]:
        place = self.place
        return {state: f"{owner}{state}_{place}" for state in ("count", "total", "floats", *QUEUES)} | {
            "shift": str(self.shift), "scale": f"2.0**-{self.shift}", "value": self.value, "scaled": f"x_{place}",
            "left": f"left_{place}", "left_scaled": f"left_x_{place}",
        }  # fmt: skip


class Fed:
    """One call of an aggregate without statements: what it is fed with, and its accumulator."""

    def __init__(self, call: AggregateCall, place: int, removal: Removal) -> None:
        self.call = call
        self.value = f"f_{place}"
        self.name = f"fed_{place}"
        self.left = f"left_f_{place}"
        self.make = maker_of(call, removal)
        self.may_refuse = is_checked(call)
        """Whether there are values that it refuses."""

    @property
    def remembered(self) -> list[Remembered]:
        """What has to be known again when the event leaves."""
        return [Remembered(f"values_{self.value}", self.value, self.left)]


def write_fed(loop: LoopWriter, call: AggregateCall, name: str) -> None:
    """Assign what the accumulator of a call is fed with; SKIP where the aggregate's own filter keeps the event out."""
    text = argument_text(loop.expressions, call.definition, call.args)
    condition = "" if call.filter is None else loop.expressions.true(call.filter)
    loop.reader.load(loop.source)
    span = call.args[0].span if call.args else call.span
    if call.filter is None:
        loop.line(f"{name} = {text}", span)
        return
    loop.line(f"{name} = {loop.expressions.names.bind(SKIP, 'SKIP')}")
    with loop.source.block(f"if {condition}:", call.filter.span):
        loop.line(f"{name} = {text}", span)


def unless_skipped(writer: SourceWriter, call: AggregateCall, value: str) -> AbstractContextManager[None]:
    """A block in which the call's accumulator takes part; none where nothing keeps events out."""
    return nullcontext() if call.filter is None else writer.block(f"if {value} is not SKIP:")


class Kept:
    """All that is kept for a plan's aggregates."""

    def __init__(self, calls: Sequence[AggregateCall], removal: Removal) -> None:
        forms: dict[Bound, list[Inline]] = {}
        self.fed: dict[int, Fed] = {}
        """By the place of the call in the plan."""
        for place, call in enumerate(calls):
            form = inline_form(call, removal)
            if form is None:
                self.fed[place] = Fed(call, place, removal)
            elif call.args:
                forms.setdefault(call.args[0], []).append(form)
        self.arguments = {node: Argument(node, place, mine) for place, (node, mine) in enumerate(forms.items())}

    @property
    def remembered(self) -> list[Remembered]:
        """What has to be known of an event again when it leaves."""
        parts = [part for argument in self.arguments.values() for part in argument.remembered]
        parts += [part for item in self.fed.values() for part in item.remembered]
        return [*parts, Remembered("held", "event", "left_event")] if self.fed else parts

    @property
    def beginnings(self) -> dict[str, Callable[[], Any]]:
        """What is kept of a set of events: names, and how each begins."""
        inline = {name: make for item in self.arguments.values() for name, make in item.kept.items()}
        return inline | {item.name: item.make for item in self.fed.values()}


def inline_form(call: AggregateCall, removal: Removal) -> Inline | None:
    """The statements of a call, if it can be written into the loop."""
    if call.distinct or call.filter is not None or call.constants or len(call.args) > 1:
        return None
    form = call.definition.inline
    return None if form is not None and form.is_in_order and removal is Removal.ANY else form
