"""Runs one eKuiper rule through steps in every way the engine knows: the results must
not depend on the way."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from edge.intake.codecs.rows import row_class
from sql import Emission, Engine, RuleOptions, SqlError, plan_rule
from tests.support.streams import catalog_of

S = 'CREATE STREAM s () WITH (DATASOURCE="s");'
"""A stream without declared columns."""

Step = tuple[Any, ...]
"""(stream, now_ms, event, …) sends events; (now_ms,) moves the clock; ("flush",) ends the sources."""


def emissions(sql: str, *steps: Step, ddl: str = S, **options: Any) -> list[Emission]:
    """What the rule gives out; the same in batches, event by event and with restarts."""
    wanted = _run(ddl, sql, steps, options)
    assert _run(ddl, sql, _singly(steps), options) == wanted, "batches differ from single events"
    assert _run(ddl, sql, _singly(steps), options, restarts=True) == wanted, "a restart is seen"
    decoded = _structs(ddl, sql, steps, options)
    if decoded is not None:
        got = _run(ddl, sql, decoded, options, shape="struct")
        assert _comparable(got) == _comparable(wanted), "structs differ from dicts"
    return wanted


def rows(sql: str, *steps: Step, ddl: str = S, **options: Any) -> list[list[dict[str, Any]]]:
    """The rows of each output, of a rule that meets no error."""
    found = emissions(sql, *steps, ddl=ddl, **options)
    assert all(item.kind == "rows" for item in found), found
    return [item.inserted for item in found]


def each(sql: str, *events: dict[str, Any], ddl: str = S) -> list[dict[str, Any]]:
    """The rows of a rule without window, for events of `s` at 1000, 2000, …"""
    steps = [("s", 1000 * number, event) for number, event in enumerate(events, start=1)]
    return [row for output in rows(sql, *steps, ddl=ddl) for row in output]


def errors(sql: str, *steps: Step, ddl: str = S, **options: Any) -> list[str]:
    """The reasons of the error events."""
    return [item.error or "" for item in emissions(sql, *steps, ddl=ddl, **options) if item.kind == "error"]


def refusal(sql: str, *, ddl: str = S, **options: Any) -> tuple[str, str, str]:
    """Code, place and message of the one problem of a rule that is refused."""
    with pytest.raises(SqlError) as caught:
        plan_rule(sql, catalog_of(ddl), RuleOptions(**options))
    (problem,) = [item for item in caught.value.problems if item.severity == "error"]
    return problem.code, sql[problem.span.start : problem.span.end], problem.message


def _singly(steps: Sequence[Step]) -> list[Step]:
    out: list[Step] = []
    for step in steps:
        out += [(*step[:2], event) for event in step[2:]] if len(step) > 2 else [step]
    return out


def _structs(ddl: str, sql: str, steps: Sequence[Step], options: dict[str, Any]) -> list[Step] | None:
    """The steps with events as a decoder makes them of the columns the rule reads; None: it reads whole
    messages."""
    plan = plan_rule(sql, catalog_of(ddl), RuleOptions(**options))
    if any(plan.columns(stream) is None for stream in plan.streams):
        return None
    return [
        (*step[:2], *(_struct(event, plan.columns(step[0]) or frozenset()) for event in step[2:]))
        if len(step) > 2
        else step
        for step in steps
    ]


def _struct(event: dict[str, Any], columns: frozenset[str]) -> Any:
    kind = row_class(columns)
    return kind(**{kind.__columns__[name]: value for name, value in event.items() if name in columns})


def _comparable(found: list[Emission]) -> list[Any]:
    """Emissions to compare: an error event of a struct has all columns that are read, and no others."""
    return [(e.at_ms, e.kind, e.error, e.inserted if e.kind == "rows" else None) for e in found]


def _run(
    ddl: str,
    sql: str,
    steps: Sequence[Step],
    options: dict[str, Any],
    *,
    restarts: bool = False,
    shape: Any = "dict",
) -> list[Emission]:
    engine = _engine(ddl, sql, options, None, 0, shape)
    out: list[Emission] = []
    now = 0
    for step in steps:
        if restarts:
            state = json.loads(json.dumps(engine.snapshot("r")))
            engine = _engine(ddl, sql, options, state, now)
        if step == ("flush",):
            out += engine.flush(now)
        elif len(step) == 1:
            now = step[0]
            out += engine.advance(now)
        else:
            stream, now, *events = step
            out += engine.push(stream, [dict(e) if isinstance(e, dict) else e for e in events], now)
    # Errors of a batch come behind its rows, so kinds are compared apart.
    return [item for item in out if item.kind != "error"] + [item for item in out if item.kind == "error"]


def _engine(
    ddl: str, sql: str, options: dict[str, Any], state: Any, now_ms: int, shape: Any = "dict"
) -> Engine:
    catalog = catalog_of(ddl)
    engine = Engine(catalog)
    engine.deploy("r", plan_rule(sql, catalog, RuleOptions(**options)), now_ms, state, shape=shape)
    assert state is None or engine.counters("r")["events_in"] == state["counts"]["events_in"]
    return engine
