"""Groups of windows that events leave one by one: sliding, count with an interval, and hopping where panes do not do.

What is kept of a group are slots of a generated class, which the statements of `sql.aggregates.inline` change. They are
exact for NULL and for numbers that are a whole multiple of a unit. The unit of a group becomes finer with the first
number that needs it. From a value that is no such number on (text, NaN, whole numbers of any size) the group's
accumulators take its events, until the last such value has left. Aggregates without statements have their accumulators
from the beginning.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any

from sql.aggregates.base import NO_EVENT, Removal
from sql.aggregates.inline import QUEUES, SHIFTS, Inline, lines
from sql.aggregates.state import decode, encode
from sql.algebra.accumulators import SKIP, is_checked, maker_of
from sql.algebra.event import Event
from sql.algebra.sample.calls import unless_skipped, write_fed
from sql.algebra.sample.content import Content, Entries, Sample
from sql.algebra.sample.text import Loop
from sql.algebra.state import EventStore, pack_key, unpack_key
from sql.errors import DataError
from sql.plan.bound import AggregateCall, Bound

EXACT_MAX = 2**53
"""Whole numbers below are shifted into units; larger ones are left to accumulators."""


def inline_form(call: AggregateCall) -> Inline | None:
    """The statements of a call, if it has such."""
    if call.distinct or call.filter is not None or call.constants or len(call.args) > 1 or call.group_by is not None:
        return None
    return call.definition.inline


def _is_plain(value: Any, *, is_scaled: bool) -> bool:
    """Whether statements can take a value: a number that is not NaN, and where it is scaled, a multiple of the unit."""
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
        """What is kept for it."""
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


class Running(Content):
    """Groups that events enter and leave. `members`: the group of each event, None where WHERE dropped it."""

    def __init__(self, calls: Sequence[AggregateCall], group_by: Sequence[Bound], entries: Entries, max_groups: int, *,
                 has_dropped: bool, reads_rows: bool, shows_empty: Any) -> None:  # fmt: skip
        """`has_dropped`: whether there may be events in the window that are in no group.

        `reads_rows`: whether what is shown reads columns of a group's oldest event.
        """
        self.calls = calls
        self.group_by = group_by
        self.entries = entries
        self.max_groups = max_groups
        self.shows_empty = shows_empty
        self.is_whole = not group_by and not has_dropped
        """Whether all events are in one group."""
        self.slots = {"groups": "{}", "times": "deque()"}
        self.slots |= {"only": "Group(())"} if self.is_whole else {"members": "deque()"}
        forms: dict[Bound | None, list[Inline]] = {}
        self.accumulated: dict[int, AggregateCall] = {}
        for place, call in enumerate(calls):
            form = inline_form(call)
            if form is None:
                self.accumulated[place] = call
            else:
                forms.setdefault(call.args[0] if call.args else None, []).append(form)
        self.arguments = [Argument(node, place, mine) for place, (node, mine) in enumerate(forms.items())]
        self.by_node = {argument.node: argument for argument in self.arguments}
        self.valued = [argument for argument in self.arguments if argument.node is not None]
        self.inlined = [call for place, call in enumerate(calls) if place not in self.accumulated]
        """The calls with statements."""
        self.makers = [maker_of(call, Removal.FIFO) for call in self.inlined]
        self.checked = [is_checked(call) for call in self.inlined]
        self.is_numbered = bool(group_by or self.accumulated)
        """Whether events need a number: to find the older group, or for an accumulator that looks at events."""
        numbers = ["number"] if self.is_numbered else []
        self.values = [*(f"a_{item.place}" for item in self.valued), *(f"f_{place}" for place in self.accumulated)]
        self.kept = [*numbers, *self.values, *(["event"] if self.accumulated else [])]
        """The locals that are remembered of an event in its group, each in a queue; the entry has a queue `entries`."""
        self.keeps_entries = reads_rows or not self.is_whole or bool(self.accumulated)
        """Whether the entries of a group are kept; else its events are known by their values alone."""
        if self.is_whole:
            queues = ["entries"] if self.keeps_entries else []
            queues += [f"held_{name}" for name in self.kept]
            self.aliases = {"g": "p.only", **{name: f"g.{name}" for name in queues}}
        self.functions: dict[str, Any] = {}
        """The generated module: `Group`, `add`, `leave`, `results`."""

    # --- code ---------------------------------------------------------------------------------------------------------

    def generated(self, functions: dict[str, Any]) -> None:
        self.functions = functions

    def write_helpers(self, loop: Loop) -> None:
        self._write_class(loop)
        with loop.block(f"def add(g, {', '.join(f'a_{item.place}' for item in self.valued)}):"):
            loop.line("unsupported = False")
            self._write_scaled(loop, "unsupported = True")
            with loop.block("if unsupported:"):
                loop.line("return False")
            self._write_inline(loop, "add")
            loop.line("return True")
        loop.line("")
        while_old = "while times and times[0] <= edge:"
        with loop.block("def leave(core, p, edge):"), loop.hoisting(), loop.block(while_old):
            self.write_leave(loop)
        loop.line("")
        with loop.block("def results(g):"):
            with loop.block("if g.acc is not None:"):
                loop.line(f"return {loop.names.bind(self, 'running')}.slow_results(g)")
            loop.line(f"return ({''.join(f'{self.result(place)}, ' for place in range(len(self.calls)))})")
        loop.line("")

    def _write_class(self, loop: Loop) -> None:
        kept = {f"{state}_{item.place}": "deque()" if state in QUEUES else "0"
                for item in self.arguments for state in item.states}  # fmt: skip
        for place, call in self.accumulated.items():
            kept[f"acc_{place}"] = f"{loop.names.bind(maker_of(call, Removal.FIFO), 'new')}()"
        with loop.block("class Group:"):
            queues = (*(["entries"] if self.keeps_entries else []), *(f"held_{name}" for name in self.kept))
            loop.line(f"__slots__ = {('key', 'acc', 'unsupported', 'scale', 'shift', 'unit', *queues, *kept)!r}")
            with loop.block("def __init__(g, key):"):
                loop.line("g.key = key")
                for name in queues:
                    loop.line(f"g.{name} = deque()")
                loop.line("g.reset()")
            with loop.block("def reset(g):"):
                loop.line("g.acc = None")
                loop.line("g.unsupported = 0")
                loop.line(f"g.shift = {SHIFTS[0]}")
                loop.line(f"g.unit = {2.0 ** SHIFTS[0]!r}")
                loop.line(f"g.scale = {2.0 ** -SHIFTS[0]!r}")
                for name, first in kept.items():
                    loop.line(f"g.{name} = {first}")
        loop.line("")

    def _write_scaled(self, loop: Loop, otherwise: str) -> None:
        """The values as whole multiples of the group's unit; `otherwise` where one of them is no such number."""
        for item in self.valued:
            value, scaled = f"a_{item.place}", f"x_{item.place}_s"
            if item.is_scaled:
                with loop.block(f"if {value}.__class__ is float:"):
                    loop.line(f"{scaled} = {value} * g.unit")
                    with loop.block(f"if {scaled}.is_integer():"):
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

    def _write_inline(self, loop: Loop, which: str) -> None:
        """The statements of all arguments whose value is not NULL."""
        for item in self.arguments:
            words = item.words(f"a_{item.place}", f"x_{item.place}_s")
            if item.node is None:
                for line in item.written(which, words):
                    loop.line(line)
                continue
            with loop.block(f"if a_{item.place} is not None:"):
                if which == "remove" and item.is_scaled:
                    value = f"a_{item.place}"
                    loop.line(f"x_{item.place}_s = ({value} * g.unit).__trunc__() if {value}.__class__ is float "
                              f"else {value} << g.shift")  # fmt: skip
                for line in item.written(which, words):
                    loop.line(line)

    def result(self, place: int) -> str:
        """The text of the value of a call over the group `g`."""
        if place in self.accumulated:
            return f"g.acc_{place}.result()"
        call = self.calls[place]
        form = inline_form(call)
        assert form is not None
        item = self.by_node[call.args[0] if call.args else None]
        return form.result.format(**item.words("", ""))

    def write_enter(self, loop: Loop) -> None:
        self._write_values(loop)
        if self.is_numbered:
            loop.line("number = core.number = core.number + 1")
        self._write_group(loop)
        for place, call in self.accumulated.items():
            if is_checked(call):
                with unless_skipped(loop, call, f"f_{place}"):
                    loop.line(f"g.acc_{place}.check(f_{place})")
        self._write_taking_in(loop)

    def _write_values(self, loop: Loop) -> None:
        if self.group_by:
            loop.key(self.group_by, "key")
        for item in self.valued:
            assert item.node is not None
            text = loop.named(item.node, f"a_{item.place}")
            if text != f"a_{item.place}":
                loop.line(f"a_{item.place} = {text}")
        for place, call in self.accumulated.items():
            write_fed(loop, call, f"f_{place}")

    def _write_group(self, loop: Loop) -> None:
        """The group of the event, `g`; a new one is not known before the event is in it."""
        if self.is_whole:
            self._write_only(loop)
            return
        groups = loop.own("groups")
        loop.line(f"g = {groups}.get({'key' if self.group_by else '()'})")
        with loop.block("if g is None:"):
            with loop.block(f"if len({groups}) >= {self.max_groups}:"):
                loop.line(f"{loop.names.bind(self, 'running')}.refuse_group()")
            loop.line(f"g = Group({'key' if self.group_by else '()'})")

    def _write_only(self, loop: Loop) -> None:
        if "g" not in loop.hoisted:
            loop.line("g = p.only")

    def _queue(self, loop: Loop, name: str) -> str:
        """The text of a queue of the group at hand."""
        return name if name in loop.hoisted else f"g.{name}"

    def _write_taking_in(self, loop: Loop) -> None:
        slow = f"{loop.names.bind(self, 'running')}.admit"
        given = f"({''.join(f'a_{item.place}, ' for item in self.valued)})"
        if self.valued:
            loop.line("unsupported = g.acc is not None")
            with loop.block("if not unsupported:"):
                self._write_scaled(loop, "unsupported = True")
            with loop.block("if unsupported:"):
                loop.line(f"{slow}(g, {given})")
            with loop.block("else:"):
                self._write_inline(loop, "add")
        else:
            self._write_inline(loop, "add")
        if self.accumulated:
            loop.line(f"event = {loop.names.bind(Event, 'Event')}(e, at, number)")
        for place, call in self.accumulated.items():
            with unless_skipped(loop, call, f"f_{place}"):
                loop.line(f"g.acc_{place}.add(f_{place}, event)")
        with loop.block(f"if not {self._filled(loop)}:"):
            loop.line(f"{loop.own('groups')}[{'()' if self.is_whole else 'g.key'}] = g")
        if self.keeps_entries:
            loop.line(f"{self._queue(loop, 'entries')}.append({self.entries.text})")
        for name in self.kept:
            loop.line(f"{self._queue(loop, f'held_{name}')}.append({name})")
        if not self.is_whole:
            loop.line(f"{loop.own('members')}.append(g)")
        loop.line(f"{loop.own('times')}.append(at)")

    def _filled(self, loop: Loop) -> str:
        """The text of a queue that is empty where the group at hand is."""
        return self._queue(loop, "entries") if self.keeps_entries else loop.own("times")

    def write_dropped(self, loop: Loop) -> None:
        loop.line(f"{loop.own('members')}.append(None)")
        loop.line(f"{loop.own('times')}.append(at)")

    def write_leave(self, loop: Loop) -> None:
        """The oldest event of the window leaves."""
        loop.line(f"{loop.own('times')}.popleft()")
        loop.observed("left(p)")
        if self.is_whole:
            self._write_only(loop)
            self._write_leaving(loop)
            return
        loop.line(f"g = {loop.own('members')}.popleft()")
        with loop.block("if g is not None:"):
            self._write_leaving(loop)

    def _write_leaving(self, loop: Loop) -> None:
        """The oldest event of the group `g` leaves."""
        if self.keeps_entries:
            loop.line(f"{self._queue(loop, 'entries')}.popleft()")
        for name in self.kept:
            loop.line(f"{name} = {self._queue(loop, f'held_{name}')}.popleft()")
        with loop.block(f"if not {self._filled(loop)}:"):
            loop.line(f"del {loop.own('groups')}[{'()' if self.is_whole else 'g.key'}]")
            if self.is_whole:
                loop.line("g.reset()")
        with loop.block("else:"):
            if self.valued:
                with loop.block("if g.acc is not None:"):
                    given = f"({''.join(f'a_{item.place}, ' for item in self.valued)})"
                    loop.line(f"{loop.names.bind(self, 'running')}.withdraw(g, {given})")
                with loop.block("else:"):
                    self._write_inline(loop, "remove")
            else:
                self._write_inline(loop, "remove")
            for place, call in self.accumulated.items():
                with unless_skipped(loop, call, f"f_{place}"):
                    loop.line(f"g.acc_{place}.remove(f_{place}, event)")

    # --- values that statements do not take ---------------------------------------------------------------------------

    def refuse_group(self) -> None:
        """There may be no further group."""
        raise DataError(f"more than {self.max_groups} groups; raise maxGroups or group coarser")

    def admit(self, g: Any, values: tuple[Any, ...]) -> None:
        """Values that the statements cannot take as the group is now. DataError leaves everything as it was."""
        if (
            g.acc is None
            and g.shift == SHIFTS[0]
            and not any(map(self._is_unsupported, [values, *self._values_held(g)]))
        ):
            self._refine(g)
            self.functions["add"](g, *values)
            return
        parts = self._as_accumulators(g) if g.acc is None else g.acc
        given = self._by_call(values)
        for part, value, checked in zip(parts, given, self.checked, strict=True):
            if checked:
                part.check(value)
        for part, value in zip(parts, given, strict=True):
            part.add(value, NO_EVENT)
        if g.acc is None:
            g.acc = parts
            g.unsupported = sum(map(self._is_unsupported, self._values_held(g)))
        g.unsupported += self._is_unsupported(values)

    def _refine(self, g: Any) -> None:
        """Count sums in the finest unit from now on."""
        finer = SHIFTS[1] - g.shift
        g.shift, g.unit, g.scale = SHIFTS[1], 2.0 ** SHIFTS[1], 2.0 ** -SHIFTS[1]
        for item in self.arguments:
            if item.is_scaled:
                name = f"total_{item.place}"
                setattr(g, name, getattr(g, name) << finer)

    def _by_call(self, values: Sequence[Any]) -> list[Any]:
        """What each call with statements is given."""
        known = {item.node: value for item, value in zip(self.valued, values, strict=True)}
        return [known[call.args[0]] if call.args else True for call in self.inlined]

    def _values_held(self, g: Any) -> Iterable[Sequence[Any]]:
        queues = [getattr(g, f"held_a_{item.place}") for item in self.valued]
        return zip(*queues, strict=True) if queues else repeat((), len(g.entries))

    def _as_accumulators(self, g: Any) -> list[Any]:
        """Accumulators that hold what the group holds."""
        parts = [make() for make in self.makers]
        for values in self._values_held(g):
            for part, value in zip(parts, self._by_call(values), strict=True):
                part.add(value, NO_EVENT)
        return parts

    def _is_unsupported(self, values: Sequence[Any]) -> bool:
        """Whether one of the values is no number that the finest unit can count."""
        return any(
            item.takes_numbers and value is not None and not _is_plain(value, is_scaled=item.is_scaled)
            for item, value in zip(self.valued, values, strict=True)
        )

    def withdraw(self, g: Any, values: tuple[Any, ...]) -> None:
        """An event leaves a group with accumulators, which may be the last that needed them."""
        for part, value in zip(g.acc, self._by_call(values), strict=True):
            part.remove(value, NO_EVENT)
        g.unsupported -= self._is_unsupported(values)
        if not g.unsupported:
            g.acc = None
            self._begin_anew(g)
            for held in self._values_held(g):
                self.functions["add"](g, *held)

    def _begin_anew(self, g: Any) -> None:
        """Empty what the statements keep; sums are counted in the finest unit."""
        for item in self.arguments:
            for state in item.states:
                setattr(g, f"{state}_{item.place}", deque() if state in QUEUES else 0)
        g.shift, g.unit, g.scale = SHIFTS[1], 2.0 ** SHIFTS[1], 2.0 ** -SHIFTS[1]

    def slow_results(self, g: Any) -> list[Any]:
        inlined = iter(g.acc)
        return [
            getattr(g, f"acc_{place}").result() if place in self.accumulated else next(inlined).result()
            for place in range(len(self.calls))
        ]

    # --- what the window asks -----------------------------------------------------------------------------------------

    def expire(self, p: Any, edge_ms: int) -> None:
        self.functions["leave"](None, p, edge_ms)

    def sample(self, p: Any) -> Sample:
        groups, results = p.groups, self.functions["results"]
        if not groups and self.shows_empty is not None:
            return [(self.entries.empty(self.shows_empty), results(self.functions["Group"](())))]
        in_order = sorted(groups.values(), key=_first) if len(groups) > 1 else groups.values()
        if not self.keeps_entries:
            return [(None, results(g)) for g in in_order]
        return [(g.entries[0], results(g)) for g in in_order]

    def clear(self, p: Any) -> None:
        p.groups.clear()
        p.times.clear()
        if self.is_whole:
            p.only.__init__(())
        else:
            p.members.clear()

    def is_empty(self, p: Any) -> bool:
        return not p.times

    def retained(self, p: Any) -> int:
        return len(p.times)

    # --- state --------------------------------------------------------------------------------------------------------

    def pack(self, p: Any) -> Any:
        """Each event in order: its instant, and where WHERE let it through, key, entry, number and values."""
        held = {id(g): zip(*self._queues(p, g), strict=True) for g in p.groups.values()}
        out = []
        members = repeat(p.groups.get(()), len(p.times)) if self.is_whole else p.members
        for time_ms, g in zip(p.times, members, strict=True):
            if g is None:
                out.append([time_ms])
                continue
            entry, number, *values = next(held[id(g)])
            packed = [[] if value is SKIP else [encode(value)] for value in values]
            kept = self.entries.pack(entry) if self.keeps_entries else None
            out.append([time_ms, pack_key(g.key), kept, number, packed])
        return out

    def _queues(self, p: Any, g: Any) -> list[Iterable[Any]]:
        """What is remembered of the events of a group: entries, numbers, values."""
        entries = g.entries if self.keeps_entries else repeat(None, len(p.times))
        numbers = g.held_number if self.is_numbered else repeat(0, len(p.times if self.is_whole else g.entries))
        return [entries, numbers, *(getattr(g, f"held_{name}") for name in self.values)]

    def unpack(self, p: Any, state: Any, store: EventStore) -> None:
        for time_ms, *rest in state:
            p.times.append(time_ms)
            if not rest:
                p.members.append(None)
                continue
            key, number, packed = unpack_key(rest[0]), rest[2], rest[3]
            entry = self.entries.unpack(rest[1]) if self.keeps_entries else None
            values = [decode(value[0]) if value else SKIP for value in packed]
            self._put(p, time_ms, key, entry, number, values)

    def _put(self, p: Any, time_ms: int, key: Any, entry: Any, number: int, values: list[Any]) -> None:
        """An event that was in the window is in it again."""
        g = p.groups.get(key)
        if g is None:
            g = p.groups[key] = p.only if self.is_whole else self.functions["Group"](key)
        given = values[: len(self.valued)]
        if g.acc is not None or not self.functions["add"](g, *given):
            self.admit(g, tuple(given))
        if self.accumulated:
            event = Event(self.entries.row(entry), time_ms, number)
            for place, value in zip(self.accumulated, values[len(self.valued) :], strict=True):
                if value is not SKIP:
                    getattr(g, f"acc_{place}").add(value, event)
            g.held_event.append(event)
        if self.is_numbered:
            g.held_number.append(number)
        for name, value in zip(self.values, values, strict=True):
            getattr(g, f"held_{name}").append(value)
        if self.keeps_entries:
            g.entries.append(entry)
        if not self.is_whole:
            p.members.append(g)


def _first(g: Any) -> int:
    """The number of the oldest event of a group."""
    number: int = g.held_number[0]
    return number
