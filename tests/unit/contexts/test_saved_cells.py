"""The saved state of statements that run in cells: what all share once, a few values for each partition."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sql import Catalog, Engine, RuleOptions, run_script
from sql.algebra.row_blocks import plain
from sql.engine.context.context_member import ContextMember
from tests.support.engines import engine_of

CONTEXT = "create schema m(dev string, g string, v double); create context C partition by dev from m; "
STATEMENTS = {
    "the group of all": "context C select context.key1 as k, avg(v) as a, count(*) as n from m",
    "groups": "context C select context.key1 as k, g, sum(v) as s from m group by g",
    "counted events": "context C select context.key1 as k, sum(v) as s from m output last every 3 events",
    "a period": "context C select context.key1 as k, max(v) as top from m output last every 10 sec",
}


def started(statement: str) -> Engine:
    return engine_of(f"{CONTEXT} @name('r') {statement};")


def fed(statement: str, devices: int) -> Engine:
    engine = started(statement)
    for at, value in ((1_000, 0.1), (2_000, 7.5)):
        rows = [
            {"dev": f"d{number}", "g": f"g{number % 3}", "v": number + value} for number in range(devices)
        ]
        engine.push("m", rows, at)
    return engine


def told(engine: Engine) -> list[Any]:
    out = [*engine.push("m", [{"dev": "d1", "g": "g1", "v": 3.0}, {"dev": "d9", "g": "g0", "v": 1.0}], 3_000)]
    out += engine.advance(30_000, "step")
    return [(item.at_ms, item.inserted) for item in out]


def restored(statement: str, context: Any, rule: Any) -> Engine:
    engine = started(statement)
    engine.restore("context C", json.loads(json.dumps(context)))
    engine.restore("r", json.loads(json.dumps(rule)))
    return engine


@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS)
def test_cells_go_on_where_they_were(statement: str) -> None:
    engine = fed(statement, 5)
    again = restored(statement, engine.snapshot("context C"), engine.snapshot("r"))
    assert again.snapshot("r") == engine.snapshot("r")
    assert again.read("r") == engine.read("r")
    assert told(again) == told(engine)


@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS)
def test_state_of_a_whole_statement_in_each_partition_is_restored(statement: str) -> None:
    """The earlier layout."""
    engine = fed(statement, 5)
    member = engine.queries["r"]
    assert isinstance(member, ContextMember)
    bodies = [[body.partition.id, plain(body.instance.snapshot())] for body in member.bodies()]
    rule = {**engine.snapshot("r"), "bodies": bodies}
    del rule["cells"]
    assert told(restored(statement, engine.snapshot("context C"), rule)) == told(engine)


def test_a_cell_takes_few_bytes_in_a_snapshot() -> None:
    statement = STATEMENTS["the group of all"]
    few, many = (len(json.dumps(fed(statement, devices).snapshot("r"))) for devices in (10, 110))
    assert (many - few) / 100 < 120


BESIDE = {
    "a table": "context C create table T (dev string primary key, c count(*))",
    "a named window": "context C create window W#keepall as m",
    "a variable": "context C create variable int limit = 3",
}


@pytest.mark.parametrize("beside", BESIDE.values(), ids=BESIDE)
@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS)
def test_the_state_does_not_depend_on_what_else_the_context_holds(statement: str, beside: str) -> None:
    """A restart deploys rules in another order than they came in."""
    engine = fed(statement, 5)
    again = Engine(Catalog())
    run_script(again, f"{CONTEXT} {beside}; @name('r') {statement};", 0, RuleOptions())
    again.restore("context C", json.loads(json.dumps(engine.snapshot("context C"))))
    again.restore("r", json.loads(json.dumps(engine.snapshot("r"))))
    assert told(again) == told(engine)
