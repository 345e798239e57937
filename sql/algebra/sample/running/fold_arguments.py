"""The arguments of aggregates whose values are kept by statements of the loop, these statements, and what
running groups keep of each event.

They are exact for NULL and for numbers that are a whole multiple of the unit of their group.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sql.aggregates.inline import QUEUES, SHIFTS, Inline, lines
from sql.algebra.sample.text import Loop
from sql.plan.bound import AggregateCall, Bound

WHOLE, HUGE = 2.0**52, 1e300
"""Floats between are whole numbers: one comparison saves the call that asks it."""

EXACT_MAX = 2**53
"""Whole numbers below are shifted into units; larger ones are left to accumulators."""


def _is_plain(value: object, *, is_scaled: bool) -> bool:
    """True if statements can take a value: a number that is not NaN, and where it is scaled, a multiple of
    the unit."""
    if value.__class__ is float:
        return (value * 2.0 ** SHIFTS[1]).is_integer() if is_scaled else value == value
    return value.__class__ is int and (not is_scaled or -EXACT_MAX < value < EXACT_MAX)


class Argument:
    """One distinct argument of aggregates with statements."""

    def __init__(self, node: Bound | None, place: int, forms: Sequence[Inline]) -> None:
        self.node = node
        self.place = place
        self.forms = list(dict.fromkeys(forms))
        self.is_scaled = any(form.is_scaled for form in forms)
        self.takes_numbers = self.is_scaled or any(form.reads_left for form in forms)

    @property
    def states(self) -> list[str]:
        """The slots kept for it."""
        return list(dict.fromkeys(state for form in self.forms for state in form.state))

    def words(self, value: str, scaled: str, owner: str = "g") -> dict[str, str]:
        """The names its statements use."""
        place = self.place
        states = {name: f"{owner}.{name}_{place}" for name in ("count", "total", "floats", *QUEUES)}
        unit = {"shift": f"{owner}.shift", "scale": f"{owner}.scale"}
        return {**states, **unit, "value": value, "scaled": scaled, "left": value, "left_scaled": scaled}

    def written(self, which: str, words: dict[str, str]) -> list[str]:
        """The statements that take a value in (`add`) or out (`remove`)."""
        statements = (text for form in self.forms for text in (form.add if which == "add" else form.remove))
        return [line.format(**words) for line in lines(statements)]


class Arguments:
    """The calls of a rule: those with statements by their distinct arguments, and those that accumulate."""

    def __init__(self, calls: Sequence[AggregateCall]) -> None:
        self.calls = calls
        forms: dict[Bound | None, list[Inline]] = {}
        self.accumulated: dict[int, AggregateCall] = {}
        """The calls without statements, by their place."""
        for place, call in enumerate(calls):
            form = call.inline
            if form is None:
                self.accumulated[place] = call
            else:
                forms.setdefault(call.args[0] if call.args else None, []).append(form)
        self.items = [Argument(node, place, mine) for place, (node, mine) in enumerate(forms.items())]
        self.by_node = {item.node: item for item in self.items}
        self.valued = [item for item in self.items if item.node is not None]
        """Those with a value; the others count events."""
        self.inlined = [call for place, call in enumerate(calls) if place not in self.accumulated]
        """The calls with statements."""

    @property
    def given(self) -> str:
        """The text of the values of an event, as a tuple."""
        return f"({''.join(f'a_{item.place}, ' for item in self.valued)})"

    def by_call(self, values: Sequence[Any]) -> list[Any]:
        """The argument of each call with statements."""
        known = {item.node: value for item, value in zip(self.valued, values, strict=True)}
        return [known[call.args[0]] if call.args else True for call in self.inlined]

    def is_unsupported(self, values: Sequence[Any]) -> bool:
        """True if one of the values is no number that the finest unit can count."""
        return any(
            item.takes_numbers and value is not None and not _is_plain(value, is_scaled=item.is_scaled)
            for item, value in zip(self.valued, values, strict=True)
        )

    # --- code -----------------------------------------------------------------------------------------------

    def write_scaled(self, loop: Loop, otherwise: str) -> None:
        """The values as whole multiples of the group's unit; `otherwise` where one of
        them is no such number."""
        for item in self.valued:
            value, scaled = f"a_{item.place}", f"x_{item.place}_s"
            if item.is_scaled:
                with loop.block(f"if {value}.__class__ is float:"):
                    loop.line(f"{scaled} = {value} * g.unit")
                    with loop.block(f"if {WHOLE} <= {scaled} < {HUGE} or {scaled}.is_integer():"):
                        loop.line(f"{scaled} = {scaled}.__trunc__()")
                    with loop.block("else:"):
                        loop.line(otherwise)
                with loop.block(f"elif {value}.__class__ is int and -{EXACT_MAX} < {value} < {EXACT_MAX}:"):
                    loop.line(f"{scaled} = {value} << g.shift")
                with loop.block(f"elif {value} is not None:"):
                    loop.line(otherwise)
            elif item.takes_numbers:
                is_number = f"{value}.__class__ is float and {value} == {value} or {value}.__class__ is int"
                with loop.block(f"if not ({is_number} or {value} is None):"):
                    loop.line(otherwise)

    def write_inline(self, loop: Loop, which: str) -> None:
        """The statements of all arguments whose value is not NULL."""
        for item in self.items:
            words = item.words(f"a_{item.place}", f"x_{item.place}_s")
            if item.node is None:
                for line in item.written(which, words):
                    loop.line(line)
                continue
            with loop.block(f"if a_{item.place} is not None:"):
                if which == "remove" and item.is_scaled:
                    value = f"a_{item.place}"
                    loop.line(
                        f"x_{item.place}_s = ({value} * g.unit).__trunc__() if {value}.__class__ is float "
                        f"else {value} << g.shift"
                    )
                for line in item.written(which, words):
                    loop.line(line)

    def result(self, place: int) -> str:
        """The text of the value of a call over the group `g`."""
        if place in self.accumulated:
            return f"g.acc_{place}.result()"
        call = self.calls[place]
        form = call.inline
        assert form is not None
        item = self.by_node[call.args[0] if call.args else None]
        return form.result.format(**item.words("", ""))


class GroupLayout:
    """The queues of a group.

    is_whole      all events are in one group
    is_numbered   events have a number: to find the older group, or for an accumulator that reads events
    keeps_entries groups keep the entries of their events; else events are known by their values alone
    values        the locals that are remembered of an event besides its number
    kept          the locals that are remembered of an event, each in a queue `held_...`
    """

    def __init__(
        self,
        calls: Sequence[AggregateCall],
        group_by: Sequence[Bound],
        *,
        has_dropped: bool,
        reads_rows: bool,
    ) -> None:
        """`has_dropped`: there may be events in the window that are in no group. `reads_rows`: what is shown
        reads columns of a group's oldest event."""
        self.group_by = group_by
        self.arguments = Arguments(calls)
        accumulated = self.arguments.accumulated
        self.is_whole = not group_by and not has_dropped
        self.is_numbered = bool(group_by or accumulated)
        self.keeps_entries = reads_rows or not self.is_whole or bool(accumulated)
        self.values = [
            *(f"a_{item.place}" for item in self.arguments.valued),
            *(f"f_{place}" for place in accumulated),
        ]
        numbers = ["number"] if self.is_numbered else []
        self.kept = [*numbers, *self.values, *(["event"] if accumulated else [])]

    @property
    def queues(self) -> list[str]:
        """The queues of a group."""
        return [*(["entries"] if self.keeps_entries else []), *(f"held_{name}" for name in self.kept)]

    @property
    def slots(self) -> dict[str, str]:
        """The slots of an instance of the window, with their first values."""
        members = {"only": "Group(())"} if self.is_whole else {"members": "deque()"}
        return {"groups": "{}", "times": "deque()"} | members

    @property
    def aliases(self) -> dict[str, str]:
        """The locals of a loop over one instance, where there is one group."""
        return {"g": "p.only", **{name: f"g.{name}" for name in self.queues}} if self.is_whole else {}
