"""The contract of aggregates: one definition each, independent of the strategy that runs it.

An `Aggregate` is the definition: names, parameters, types. Its `make(removal)` builds the state machine that
the planner needs. `Removal` is the order in which values will leave, so that each aggregate can pick the
cheapest correct structure:

    NEVER    values only come (tumbling panes, running totals): grow-only
    FIFO     values leave in the order they came (length, time, sliding): running sums, monotonic queues
    ANY      values leave in any order (sort, unique, deletion): ordered multisets, counted values

An accumulator is driven by `add(value, event)` and `remove(value, event)`. `value` is the argument's value, a
tuple where the aggregate takes several, and TRUE for `count(*)`; NULLs are passed in and the definition skips
them or not. `event` is the event the value was computed from. Removing an event passes the *same* value that
was added for it.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from sql.aggregates.inline import Inline
from sql.costs import CONSTANT, Cost
from sql.functions.definition import Parameter
from sql.record import Record
from sql.types import Saved, Type, Value


class Removal(enum.Enum):
    """The order in which values leave the relation that an aggregate covers."""

    NEVER = "never"
    FIFO = "fifo"
    ANY = "any"


class EventView(Protocol):
    """The part of an event that accumulators may read: its place in the stream, its instant, its columns."""

    @property
    def seq(self) -> int: ...
    @property
    def time_ms(self) -> int: ...
    @property
    def row(self) -> Any: ...


NO_EVENT: Any = None
"""The event passed to an aggregate that does not read it."""


class Accumulator(ABC):
    """The running state of one aggregate over one group. State is plain data."""

    __slots__ = ()

    @abstractmethod
    def add(self, value: Value, event: EventView) -> None:
        """Add a value. Raises DataError for a value of a wrong type; the state is then unchanged."""

    def check(self, value: Value) -> None:  # most aggregates take any value
        """Raise the DataError that `add` would raise: several aggregates take an event together or not at
        all."""

    def add_many(self, values: list[Any]) -> None:
        """Add ints and floats (nothing else) without their events. Called if `of_numbers` is defined."""
        for value in values:
            self.add(value, NO_EVENT)

    def remove(self, value: Value, event: EventView) -> None:
        """Remove a value that was added before."""
        raise AssertionError(f"{type(self).__name__} was not built for removal")

    @abstractmethod
    def result(self) -> Any:
        """The current value; None is NULL."""

    def merge(self, other: Accumulator) -> None:
        """Add the state of another accumulator of the same kind over later events (panes, cloud partials)."""
        raise AssertionError(f"{type(self).__name__} cannot merge")

    def unmerge(self, other: Accumulator) -> None:
        """Remove the state of an accumulator that was merged before; for `invertible` definitions."""
        raise AssertionError(f"{type(self).__name__} cannot unmerge")

    def held(self) -> Iterable[EventView]:
        """The events the state refers to; a snapshot is stored together with them."""
        return ()

    @abstractmethod
    def snapshot(self) -> Saved:
        """The state as plain JSON-able data (events as their `seq`)."""

    @abstractmethod
    def restore(self, state: Saved, events: Callable[[int], EventView]) -> None:
        """Put a snapshot back; `events` finds a retained event by its `seq`."""


class Aggregate(Record):
    """The definition of an aggregate function.

    make        builds an accumulator for a way of leaving; constant parameters are passed after it.
    ever        keeps values that have left (firstever, countever …): `remove` is never called.
    recalls     the result depends on what has left, though `remove` is called (leaving, rate(ts)).
    needs_event the accumulator keeps events (minby, sorted, deduplicate):
                its result is an event or a list of events.
    ordered     the arguments are criteria, which may be written with `desc` (minby, sorted).
    of_events   in a join of EPL it takes the events of one source, each once.
    whole_row   the argument may be `*`, the whole event: `collect(*)`, `window(*)`, `last_value(*, true)`.
    of_numbers  the result over a list of ints and floats, or None to use the accumulator; for the fast
                path (`bulk`). Only for aggregates that take any number, whatever the order, and merge.
    inline      the same as statements of a generated loop,
                for numbers that come and go (`sql.aggregates.inline`).
    invertible  its accumulators can remove what was merged (`unmerge`): panes need no second stack.
    constants   the number of trailing constant parameters, passed to `make` and not to `add`.
    examples    pairs of a call over a window's values, oldest first, as `last(x, 1) over [1, 2, 3]`,
                and its result.
    """

    name: str
    make: Callable[..., Accumulator]
    doc: str
    parameters: tuple[Parameter, ...]
    returns: Type | Callable[[Sequence[Type]], Type]
    aliases: tuple[str, ...] = ()
    ever: bool = False
    recalls: bool = False
    needs_event: bool = False
    ordered: bool = False
    of_events: bool = False
    whole_row: bool = False
    constants: int = 0
    mergeable: bool = False
    of_numbers: Callable[[list[Any]], Any] | None = None
    inline: Inline | None = None
    invertible: bool = False
    cost: Cost = CONSTANT
    examples: tuple[tuple[str, Any], ...] = ()

    @property
    def covers_more(self) -> bool:
        """True if the result depends on more than the events in a window."""
        return self.ever or self.recalls

    @property
    def most_arguments(self) -> int | None:
        """The largest number of arguments; None where there may be any number."""
        return None if any(part.variadic for part in self.parameters) else len(self.parameters)

    def takes_filter(self, arguments: int) -> bool:
        """True if the last of so many arguments is the filter in EPL, as in `sum(x, n > 1)`."""
        return bool(self.parameters) and self.most_arguments == arguments - 1

    def result_type(self, arguments: Sequence[Type]) -> Type:
        """The type of a call with these argument types."""
        return self.returns(arguments) if callable(self.returns) else self.returns


_aggregates: dict[str, Aggregate] = {}


def register(aggregate: Aggregate) -> Aggregate:
    """Register an aggregate under its name and aliases."""
    for word in (aggregate.name, *aggregate.aliases):
        assert word not in _aggregates, f"aggregate {word} is registered twice"
        _aggregates[word] = aggregate
    return aggregate


def lookup(name: str) -> Aggregate | None:
    """The aggregate called `name` (any case), or None."""
    return _aggregates.get(name.lower())


def names() -> tuple[str, ...]:
    """All names and aliases, sorted."""
    return tuple(sorted(_aggregates))


def all_aggregates() -> tuple[Aggregate, ...]:
    """Every aggregate once, by name."""
    return tuple(
        sorted({item.name: item for item in _aggregates.values()}.values(), key=lambda item: item.name)
    )
