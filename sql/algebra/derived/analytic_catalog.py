"""Analytic functions for the manual: arguments, meaning, and an example over events that the tests run.

Their operators are in `analytic`, their binding in `sql.binder.calls.call_binder`.
"""

from __future__ import annotations

from typing import Any

from sql.record import Record


class Example(Record):
    """A call, the values of column x (and of y, where a pair) in the order of events,
    and what each event gives."""

    call: str
    events: tuple[dict[str, Any], ...]
    results: tuple[Any, ...]


class Analytic(Record):
    """An analytic function. `most` None: any number of arguments."""

    name: str
    signature: str
    least: int
    most: int | None
    doc: str
    examples: tuple[Example, ...]


def _events(name: str, *values: Any) -> tuple[dict[str, Any], ...]:
    return tuple({name: value} for value in values)


def _cycles(*pairs: tuple[Any, str]) -> tuple[dict[str, Any], ...]:
    return tuple({"x": x, "kind": kind} for x, kind in pairs)


_RUNNING = (
    " With `begin` and `reset` it runs from an event that meets `begin` to the one that meets `reset`, "
    "both in; after that its value is that of nothing until `begin` holds again. `OVER (WHEN …)` chooses the "
    "events that count; each event may meet `begin` and `reset`."
)

_TARGET = (
    " Without a target every change counts. The first value is a change. "
    "With `ignore_null` TRUE a NULL is none."
)

_BETWEEN = _cycles((5, "on"), (2, "run"), (1, "off"), (7, "run"))

ANALYTIC_FUNCTIONS: tuple[Analytic, ...] = (
    Analytic(
        "lag", "lag(x [, n [, default [, ignore_null]]])", 1, 4,
        "The value of x n events before (1 if left out), or `default` where there were not so many. "
        "NULLs are not remembered, unless `ignore_null` is FALSE.",
        (Example("lag(x)", _events("x", 1, 4, None, 6), (None, 1, 4, 4)),
         Example("lag(x, 2, 0)", _events("x", 1, 4, 6), (0, 0, 1)),
         Example("lag(x, 1, 0, FALSE)", _events("x", 1, None, 6), (0, 1, None))),
    ),
    Analytic(
        "latest", "latest(x [, default])", 1, 2,
        "The newest x that was not NULL, of this event or one before; `default` while there was none.",
        (Example("latest(x, 0)", _events("x", None, 3, None), (0, 3, 3)),),
    ),
    Analytic(
        "changed_col", "changed_col(ignore_null, x)", 2, 2,
        "x where it differs from the last value, else NULL. With `ignore_null` TRUE a NULL is no change.",
        (Example("changed_col(TRUE, x)", _events("x", 1, 1, None, 2), (1, None, None, 2)),),
    ),
    Analytic(
        "had_changed", "had_changed(ignore_null, x, …)", 2, None,
        "Whether any of the values differs from its last one. `*` means all columns.",
        (Example("had_changed(TRUE, x)", _events("x", 1, 1, None, 2), (True, False, False, True)),),
    ),
    Analytic(
        "change_to", "change_to(x [, target [, ignore_null]])", 1, 3,
        f"Whether x has changed to the target with this event.{_TARGET}",
        (Example("change_to(x, 1, TRUE)", _events("x", 0, 1, None, 1, 2), (False, True, False, False, False)),
         Example("change_to(x, 2)", _events("x", 1, 2, None, 2), (False, True, False, True)),
         Example("change_to(x)", _events("x", 1, 1, 2), (True, False, True))),
    ),
    Analytic(
        "change_capture", "change_capture(value, x [, target [, ignore_null]])", 2, 4,
        f"The value of the event with which x last changed to the target; NULL before it has.{_TARGET}",
        (Example("change_capture(x, kind, 'on')",
                 _cycles((1, "off"), (2, "on"), (3, "on"), (4, "off"), (5, "on")), (None, 2, 2, 2, 5)),),
    ),
    Analytic(
        "consecutive_count", "consecutive_count(condition)", 1, 1,
        "How many events in a row, up to this one, have met the condition.",
        (Example("consecutive_count(x > 30)", _events("x", 25, 32, 35, None, 33), (0, 1, 2, 0, 1)),),
    ),
    Analytic(
        "consecutive_start", "consecutive_start(condition, value)", 2, 2,
        "The value of the first of the events in a row, up to this one, that have met the condition; NULL "
        "where it does not hold.",
        (Example("consecutive_start(x > 3, x)", _events("x", 2, 4, 5, 2, 6), (None, 4, 4, None, 6)),),
    ),
    Analytic(
        "acc_sum", "acc_sum(x [, begin, reset])", 1, 3, f"The sum of x of all events so far.{_RUNNING}",
        (Example("acc_sum(x)", _events("x", 1, 4, None), (1.0, 5.0, 5.0)),
         Example("acc_sum(x, kind = 'on', kind = 'off')", _BETWEEN, (5.0, 7.0, 8.0, 0.0))),
    ),
    Analytic(
        "acc_avg", "acc_avg(x [, begin, reset])", 1, 3, f"The mean of x of all events so far.{_RUNNING}",
        (Example("acc_avg(x)", _events("x", 1, 4, None), (1.0, 2.5, 2.5)),),
    ),
    Analytic(
        "acc_max", "acc_max(x [, begin, reset])", 1, 3, f"The highest x of all events so far.{_RUNNING}",
        (Example("acc_max(x)", _events("x", 1, 4, 2), (1.0, 4.0, 4.0)),),
    ),
    Analytic(
        "acc_min", "acc_min(x [, begin, reset])", 1, 3, f"The lowest x of all events so far.{_RUNNING}",
        (Example("acc_min(x)", _events("x", 4, 1, 2), (4.0, 1.0, 1.0)),),
    ),
    Analytic(
        "acc_count", "acc_count(x [, begin, reset])", 1, 3,
        f"How many events so far had an x that is not NULL; `*` counts all.{_RUNNING}",
        (Example("acc_count(x)", _events("x", 1, None, 2), (1, 1, 2)),
         Example("acc_count(*)", _events("x", 1, None, 2), (1, 2, 3))),
    ),
)  # fmt: skip
"""All of them, in the order of the manual."""
