"""The parameters of windows: lengths and sizes as values, keys and time stamps as functions of the event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sql.algebra.event import Event
from sql.algebra.retain.data_clock import check_stamp
from sql.calendar.period import Period
from sql.codegen.functions import FunctionSet, constant_value
from sql.errors import DataError
from sql.plan.bound import Bound
from sql.plan.clauses import LotPlan, PeriodArgument, WindowPlan
from sql.types import literal

WindowOrLot = WindowPlan | LotPlan


class Parameters:
    """The functions of parameters, compiled once for all instances of the windows."""

    def __init__(self, functions: FunctionSet) -> None:
        self.functions = functions
        self._compiled: dict[tuple[int, str], Any] = {}
        """By window and parameter."""
        self._of_arrival: dict[tuple[int, str], Callable[[Event], Any]] = {}
        """Those that read the event that enters, and nothing else."""

    def once(self, plan: WindowOrLot, name: str, make: Callable[[], Any]) -> Any:
        """The result of `make`, computed once."""
        place = (id(plan), name)
        if place not in self._compiled:
            self._compiled[place] = make()
        return self._compiled[place]

    def of_arrival(self, plan: WindowOrLot, name: str, make: Callable[[], Callable[[Event], Any]]) -> Any:
        """A function of the event that enters."""
        function = self._of_arrival[id(plan), name] = self.once(plan, name, make)
        return function

    def key(self, plan: WindowOrLot, name: str, nodes: tuple[Bound, ...]) -> Any:
        """The function of an event's key."""
        return self.of_arrival(plan, name, lambda: self.functions.key(nodes))

    def check(self, event: Event) -> None:
        """Raise what the windows made so far would raise of an event that enters, as far as that depends on
        the event alone."""
        for function in self._of_arrival.values():
            function(event)


def time_of(value: Callable[[Event], Any]) -> Callable[[Event], Any]:
    """The function of an event's own time in ms, or None; DataError where it is anything but a finite number
    or NULL."""

    def found(event: Event) -> Any:
        time_ms = value(event)
        if time_ms.__class__ is not int and time_ms is not None:
            check_stamp(time_ms)
        return time_ms

    return found


def period(argument: PeriodArgument, functions: FunctionSet, *, zero_allowed: bool = False) -> Period:
    """The length of time of a parameter, with the present values of variables."""
    amounts: dict[str, Any] = {}
    for bound, unit in argument.parts:
        amount = constant_value(bound, functions)
        if amount.__class__ not in (int, float):
            raise DataError(f"a length of time is a number, not {literal(amount)}", argument.span)
        amounts[unit] = amount
    try:
        return Period.of(amounts, zero_allowed=zero_allowed)
    except ValueError as error:
        raise DataError(str(error), argument.span) from error


def size(argument: Bound, functions: FunctionSet) -> int:
    """The size of a parameter, with the present values of variables."""
    value = constant_value(argument, functions)
    if value.__class__ is not int or value < 1:
        raise DataError(f"a size is a whole number of at least 1, not {literal(value)}", argument.span)
    return value
