"""Analytic functions: they run on each incoming row, in order, and keep state for the life of the rule
(ekuiper.md part 3).

Each is a small state machine. `step(args, when)` gives the value for a row and prepares the state behind it;
`keep()` makes that the state. What fails between the two leaves no trace: an event that cannot be evaluated
must not cost the next one its result. `when` FALSE remembers no value.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from sql.aggregates.plain_values import decode, encode
from sql.algebra.event import Event
from sql.algebra.event_store import pack_key, unpack_key
from sql.codegen.functions import FunctionSet
from sql.errors import DataError
from sql.plan.bound import AnalyticCall
from sql.plan.logical import Plan
from sql.rows import WholeRow
from sql.types import Plain, Value, describe, key_of, less


class AnalyticState(ABC):
    """The state of one analytic function for one partition."""

    @abstractmethod
    def step(self, args: Sequence[Any], when: bool) -> Any:
        """The value for a row."""

    @abstractmethod
    def keep(self) -> None:
        """The row of the last `step` counts."""

    @abstractmethod
    def state(self) -> Any: ...

    @abstractmethod
    def put_back(self, state: Value) -> None: ...


def filled(args: Sequence[Any], defaults: Sequence[Any]) -> list[Any]:
    """The arguments with the defaults of those left out."""
    return [*args, *defaults[len(args) :]]


_UNSEEN = object()
"""No value, which is not NULL."""


class Lag(AnalyticState):
    """lag(x [, n [, default [, ignore_null]]]): the value n rows back."""

    def __init__(self) -> None:
        self.values: deque[Any] = deque()
        self.back = 1
        self.next: Any = _UNSEEN

    def step(self, args: Sequence[Any], when: bool) -> Any:
        x, n, default, ignore_null = filled(args, (None, 1, None, True))
        if n.__class__ is not int or n < 1:
            raise DataError(f"lag() counts back at least 1 row, not {describe(n)}")
        self.back = n
        self.next = x if when and not (x is None and ignore_null) else _UNSEEN
        return self.values[-n] if len(self.values) >= n else default

    def keep(self) -> None:
        if self.next is not _UNSEEN:
            self.values.append(self.next)
            while len(self.values) > self.back:
                self.values.popleft()

    def state(self) -> list[Any]:
        return list(self.values)

    def put_back(self, state: list[Any]) -> None:
        self.values = deque(state)


class ChangedColumn(AnalyticState):
    """changed_col(ignore_null, x): x when it differs from the remembered value, else NULL."""

    def __init__(self) -> None:
        self.known: list[Any] = []
        self.next: list[tuple[int, Any]] = []
        """The values that replace the remembered ones, by place."""

    def _changed(self, ignore_null: object, values: Sequence[Any], when: bool) -> list[bool]:
        self.next = []
        if ignore_null is not True and ignore_null is not False:
            raise DataError(f"whether NULL is ignored is TRUE or FALSE, not {describe(ignore_null)}")
        if not when:
            return [False] * len(values)
        if not self.known:
            self.known = [_UNSEEN] * len(values)
        out = []
        for place, value in enumerate(values):
            if value.__class__ is WholeRow:
                out.append(self._row_changed(place, value, ignore_null))
                continue
            skip = value is None and ignore_null
            differs = not skip and (
                self.known[place] is _UNSEEN or key_of(self.known[place]) != key_of(value)
            )
            out.append(differs)
            if differs:
                self.next.append((place, value))
        return out

    def _row_changed(self, place: int, row: WholeRow, ignore_null: object) -> bool:
        """`*` of a stream without declared columns: each column is compared, one that is missing as NULL."""
        known = {} if self.known[place] is _UNSEEN else self.known[place]
        changed = {
            name: value
            for name, value in {**dict.fromkeys(known), **row}.items()
            if not (value is None and ignore_null)
            and (name not in known or key_of(known[name]) != key_of(value))
        }
        self.next.append((place, {**known, **changed}))
        return bool(changed)

    def step(self, args: Sequence[Any], when: bool) -> Any:
        return args[1] if self._changed(args[0], args[1:], when)[0] else None

    def keep(self) -> None:
        for place, value in self.next:
            self.known[place] = value

    def state(self) -> list[list[Any]]:
        return [[] if value is _UNSEEN else [value] for value in self.known]

    def put_back(self, state: list[list[Any]]) -> None:
        self.known = [item[0] if item else _UNSEEN for item in state]


class HadChanged(ChangedColumn):
    """had_changed(ignore_null, x, …): TRUE if any argument differs from its remembered value."""

    def step(self, args: Sequence[Any], when: bool) -> Any:
        return any(self._changed(args[0], args[1:], when))


Step = Callable[[Any, Sequence[Any], bool], tuple[Any, Any]]
"""From the value that is remembered, the arguments and `when`: the value that is remembered next, and that of
the row."""


class OneValue(AnalyticState):
    """A function that remembers one value, `now`; `next` follows it."""

    def __init__(self, first: object, following: Step) -> None:
        self.now = self.next = first
        self.following = following

    def step(self, args: Sequence[Any], when: bool) -> Any:
        self.next, value = self.following(self.now, args, when)
        return value

    def keep(self) -> None:
        self.now = self.next

    def state(self) -> Any:
        return self.now

    def put_back(self, state: object) -> None:
        self.now = state


def _latest(now: object, args: Sequence[Any], when: bool) -> tuple[Any, Any]:
    """latest(x [, default]): the newest value that was not NULL."""
    newest = args[0] if when and args[0] is not None else now
    return newest, newest if newest is not None or len(args) < 2 else args[1]


def _change_to(known: list[Any], args: Sequence[Any], when: bool) -> tuple[list[Any], bool]:
    """change_to(x [, target [, ignore_null]]): whether x has become the target, or any other value without
    one; the first value is a change. The newest x is remembered in a list."""
    x, *target = args[:2]
    ignore_null = args[2] if len(args) > 2 else False
    if ignore_null is not True and ignore_null is not False:
        raise DataError(f"whether NULL is ignored is TRUE or FALSE, not {describe(ignore_null)}")
    if not when or (x is None and ignore_null):
        return known, False
    changed = not known or key_of(known[0]) != key_of(x)
    return [x], changed and (not target or key_of(target[0]) == key_of(x))


def _change_capture(now: list[Any], args: Sequence[Any], when: bool) -> tuple[list[Any], Any]:
    """change_capture(value, x [, target [, ignore_null]]): the value as x became the target. What `change_to`
    remembers and the value are remembered."""
    known, becomes = _change_to(now[0], args[1:], when)
    captured = args[0] if becomes else now[1]
    return [known, captured], captured


def _consecutive_count(count: int, args: Sequence[Any], when: bool) -> tuple[int, int]:
    """consecutive_count(condition): how many rows up to this one have met the condition."""
    following = count if not when else count + 1 if args[0] is True else 0
    return following, following


def _consecutive_start(first: list[Any], args: Sequence[Any], when: bool) -> tuple[list[Any], Any]:
    """consecutive_start(condition, value): the value of the first of the rows up to this one that meet the
    condition. That value is remembered in a list, which is empty where the condition does not hold."""
    if when:
        first = (first or [args[1]]) if args[0] is True else []
    return first, first[0] if first else None


def _running(kind: str) -> Step:
    """acc_*(x [, begin, reset]): a running value; begin opens, the row that meets reset still counts.

    Behind that row the value is that of nothing, until begin holds again. `when` says which values count:
    begin and reset are asked of every row. Count, total, extreme and whether it is open are remembered;
    earlier versions stored the last value as well.
    """

    def step(now: Sequence[Any], args: Sequence[Any], when: bool) -> tuple[list[Any], Any]:
        x, begin, reset = filled(args, (None, True, False))
        count, total, extreme, is_open, *_ = now
        is_open = is_open or begin is True
        if is_open and when and x is not None:
            count, total, extreme = _counted(kind, x, count, total, extreme)
        closes = is_open and reset is True
        following = [0, 0, None, False] if closes else [count, total, extreme, is_open]
        return following, _value(kind, count, total, extreme)

    return step


def _counted(kind: str, x: Value, count: int, total: float, extreme: object) -> tuple[int, Any, Any]:
    """Count, total and extreme with another value."""
    if kind != "acc_count" and x.__class__ not in (int, float):
        raise DataError(f"{kind}() takes numbers, not {describe(x)}")
    if kind in ("acc_sum", "acc_avg"):
        total += x
    elif kind in ("acc_max", "acc_min"):
        pair = (extreme, x) if kind == "acc_max" else (x, extreme)
        if extreme is None or less(*pair):
            extreme = x
    return count + 1, total, extreme


def _value(kind: str, count: int, total: float, extreme: object) -> Any:
    if kind == "acc_count":
        return count
    if kind == "acc_sum":
        return float(total)
    if not count:
        return None
    if kind == "acc_avg":
        return total / count
    return float(extreme) if extreme.__class__ is int else extreme


_KINDS: dict[str, Callable[[], AnalyticState]] = {
    "lag": Lag,
    "latest": lambda: OneValue(None, _latest),
    "changed_col": ChangedColumn,
    "had_changed": HadChanged,
    "change_to": lambda: OneValue([], _change_to),
    "change_capture": lambda: OneValue([[], None], _change_capture),
    "consecutive_count": lambda: OneValue(0, _consecutive_count),
    "consecutive_start": lambda: OneValue([], _consecutive_start),
}


class Partitions(dict[Hashable, AnalyticState]):
    """The states of one function by key. Setting a further key than `keys_max` raises `DataError`."""

    def __init__(self, keys_max: int) -> None:
        super().__init__()
        self.keys_max = keys_max

    def __setitem__(self, key: Hashable, state: AnalyticState) -> None:
        if len(self) >= self.keys_max and key not in self:
            remedy = "raise maxGroups (maxKeys of the stream) or partition coarser"
            raise DataError(f"more than {self.keys_max} partitions; {remedy}")
        super().__setitem__(key, state)


def analytic_stage(plan: Plan, functions: FunctionSet) -> AnalyticStage | None:
    """The analytic functions of a plan; None where it has none."""
    return AnalyticStage(plan.analytics, functions, plan.options.max_groups) if plan.analytics else None


class AnalyticStage:
    """All analytic functions of a query: fills `event.extra` as events come in.

    What an event changes is kept when the next one comes, or time goes on:
    until then the event may turn out to be one that cannot be evaluated.
    """

    def __init__(self, calls: tuple[AnalyticCall, ...], functions: FunctionSet, keys_max: int) -> None:
        self.calls = calls
        self.args = [[functions.value(arg) for arg in call.args] for call in calls]
        self.whens = [functions.true(call.when) if call.when is not None else None for call in calls]
        self.keys = [functions.key(call.partition_by) for call in calls]
        self.partitions = [Partitions(keys_max) for _ in calls]
        self._newest: list[AnalyticState] = []
        self._row: Any = None
        """The newest event, and the states it has stepped."""

    def see(self, event: Event) -> list[Any]:
        """The values of all functions for this event; what it reads may use those before it."""
        self.keep()
        self._row = event.row
        values: list[Any] = []
        event.extra = values
        for i, call in enumerate(self.calls):
            args = [arg(event) for arg in self.args[i]]
            passes = self.whens[i]
            when = passes is None or bool(passes(event))
            key = self.keys[i](event)
            found = self.partitions[i].get(key)
            if found is None:
                found = self.partitions[i][key] = self.fresh(call.name)
            values.append(found.step(args, when))
            self._newest.append(found)
        return values

    def keep(self) -> None:
        """The newest event counts."""
        for machine in self._newest:
            machine.keep()
        self._newest.clear()
        self._row = None

    def drop(self, row: object) -> None:
        """An event could not be evaluated: if it is the newest one, it does not count."""
        if row is self._row:
            self._newest.clear()
            self._row = None

    @staticmethod
    def fresh(name: str) -> AnalyticState:
        """A new state of the function called `name`."""
        return _KINDS[name]() if name in _KINDS else OneValue([0, 0, None, False], _running(name))

    def snapshot(self) -> list[list[tuple[Plain, Plain]]]:
        self.keep()
        return [
            [(pack_key(key), encode(item.state())) for key, item in part.items()] for part in self.partitions
        ]

    def restore(self, state: list[list[tuple[Plain, Plain]]]) -> None:
        for part, call, saved in zip(self.partitions, self.calls, state, strict=True):
            restored = {}
            for key, item in saved:
                machine = restored[unpack_key(key)] = self.fresh(call.name)
                machine.put_back(decode(item))
            part.update(restored)  # as many as there were, although the bound may have been lowered since
