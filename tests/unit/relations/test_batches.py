"""Look-ups of a whole batch of events: each event finds what it would find by itself."""

from __future__ import annotations

from math import nan
from typing import Any

import pytest

from sql import Catalog, Engine, run_script
from sql.algebra.table.ahead import CACHED

DECLARED = (
    "create schema E (k any, n any); create schema S (k any, n any);"
    "create window W#keepall as (k any, n any); create table T (k any primary key, n any);"
    "insert into W select k, n from E;"
)
STATEMENTS = (
    "select s.n as a, t.n as b from S as s unidirectional, T as t where t.k = s.k",
    "select s.n as a, w.n as b from S as s unidirectional, W as w where w.k = s.k and w.n > 2",
    "select w.n as b, t.n as c from S as s unidirectional, W as w, T as t where w.k = s.k and t.k = s.k",
    "select s.n as a, w.n as b from S as s unidirectional, W(n > 2) as w where w.k = s.k",
    "on S as s select w.n as b, w.k as k from W as w where w.k = s.k",
)
KEYS: tuple[Any, ...] = ("k3", "k4000", "none", 7, 7.0, True, None, nan, [1, "x"], {"a": 1})


def engine_with(statement: str, rows: int) -> Engine:
    """An engine with so many rows beside those of the keys above; the window has two of each key."""
    engine = Engine(Catalog())
    run_script(engine, DECLARED, 0)
    run_script(engine, f"@name('s') {statement}", 0)
    held = [{"k": f"k{number}", "n": number} for number in range(rows)]
    held += [{"k": key, "n": number} for number, key in enumerate((7, True, nan, [1, "x"], {"a": 1}))]
    engine.catalog.relations["T"].change(held, (), 0)
    engine.catalog.relations["W"].change([*held, *({**row, "n": 5} for row in held)], (), 0)
    engine.push("E", [{"k": "first", "n": 0}], 0)  # what was changed by hand is dispatched
    return engine


def results(engine: Engine, batches: list[list[dict[str, Any]]]) -> list[str]:
    """The emissions of the statement, in order."""
    emissions = [each for rows in batches for each in engine.push("S", rows, 1) if each.rule == "s"]
    assert not [each for each in emissions if each.kind == "error"]
    return [repr(row) for each in emissions for row in each.inserted]


@pytest.mark.parametrize("rows", [5, CACHED + 1])
@pytest.mark.parametrize("statement", STATEMENTS)
def test_each_event_of_a_batch_finds_what_it_finds_alone(statement: str, rows: int) -> None:
    events = [{"k": key, "n": number} for number, key in enumerate(KEYS)]
    events += [{"n": -1}, *events]
    together = results(engine_with(statement, rows), [events])
    assert together == results(engine_with(statement, rows), [[event] for event in events])
    assert len(together) >= 8
