"""A rule that is deployed with its saved state begins with the values that variables had when it began."""

from __future__ import annotations

import json

import pytest

from sql import Catalog, Engine, Plan, RuleOptions, plan_rule
from sql.engine.script import run_script

DECLARED = """
create schema E(id string, k string, n int);
create stream T (id STRING, ts BIGINT) WITH (TIMESTAMP="ts");
create variable int size = 2;
"""

CONTEXTS = """
create context Start start @now end after 1 min;
create context Ids partition by id from T;
create context Spans initiated by E(n=1) as s terminated after 1 min;
"""

TEXTS = {
    "plain": "select count(*) as n from E#length(size)",
    "started": "context Start select count(*) as n from E#length(size)",
    "spans": "context Spans select context.s.id as s, count(*) as n from E#length(size)",
    "batches": "select count(*) as n from E#length_batch(size)",
    "joined": "select count(*) as n from E#length(size) as a, E#lastevent as b",
    "limited": "select count(*) as n from E output last every size events",
}


def engine_of(size: int) -> Engine:
    engine = Engine(Catalog())
    run_script(engine, DECLARED, 0, RuleOptions())
    engine.catalog.restore_variables({"size": size})
    return engine


def plan_of(text: str) -> Plan:
    """The plan of a rule of the gateway, whose context goes with it."""
    engine = engine_of(2)
    run_script(engine, CONTEXTS, 0, RuleOptions())
    return plan_rule(text, engine.catalog, RuleOptions())


@pytest.mark.parametrize("name", TEXTS)
def test_a_variable_that_has_no_valid_value_any_more_loses_no_state(name: str) -> None:
    engines = [engine_of(2), engine_of(2)]
    plan = plan_of(TEXTS[name])
    for engine in engines:
        engine.deploy("r", plan, 0)
        for n in (1, 2, 3):
            engine.push("E", [{"id": f"e{n}", "k": "x", "n": n}], n * 1000)
        engine.set_variable("size", 0)
    there = engines[0]
    again = engine_of(0)
    again.deploy("r", plan, 3000, json.loads(json.dumps(there.snapshot("r"))))
    assert again.snapshot("r") == there.snapshot("r")
    for n in (4, 5, 1):
        event = {"id": f"f{n}", "k": "x", "n": n}
        expected, found = (e.push("E", [event], 4000).parts for e in (engines[1], again))
        assert found == expected
    assert again.counters("r") == engines[1].counters("r")


def test_a_context_that_one_rule_has_in_event_time_begins_again() -> None:
    plan = plan_of("context Ids select id, count(*) as n from T#length(size)")
    there, again = engine_of(2), engine_of(0)
    there.deploy("r", plan, 0)
    for ts in (1000, 2000, 3000):
        there.push("T", [{"id": "a", "ts": ts}], ts)
    again.deploy("r", plan, 3000, json.loads(json.dumps(there.snapshot("r"))))
    rows = [engine.push("T", [{"id": "a", "ts": 4000}], 4000).parts for engine in (there, again)]
    assert rows[0] == rows[1]
    assert rows[0][0].inserted == [{"id": "a", "n": 2}]
