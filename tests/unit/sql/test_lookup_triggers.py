"""Statements that act on relations and variables with what a store has answered:
order, steps, filters, snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from sql.binder.rule import plan_lookup
from sql.emission import apart
from sql.engine.script import run_script
from sql.errors import SqlError
from sql.language import parse
from sql.plan.lookup_plan import AnswerPolicy, Request
from sql.plan.options import RuleOptions
from tests.unit.sql.lookup_world import LookupWorld

TABLE = 'CREATE TABLE device (id STRING, site STRING) WITH (DATASOURCE="device", TYPE="sql", KIND="lookup")'
SCRIPT = """
create schema reading (dev string, temp double);
create schema Known (dev string, temp double, site string);
create schema Unknown (dev string, temp double);
create variable string last = '';
create table T (dev string primary key, site string);
create window W#keepall as (dev string, site string);
"""
SITE = "(select d.site from device as d where d.id = r.dev)"
MERGE = f"""@name('r') on reading as r merge T as t where t.dev = r.dev
when not matched then insert select r.dev as dev, {SITE} as site
when matched and {SITE} = 'N' then update set site = 'again'
when matched then delete"""


class World(LookupWorld):
    """An engine with a table of a store and these statements. The store is the test,
    which answers when it likes."""

    def __init__(self, statements: str, policy: AnswerPolicy | None = None) -> None:
        super().__init__(shown)
        (statement,) = parse(TABLE)
        self.catalog.define(statement)  # type: ignore[arg-type]
        planned = plan_lookup(statement, TABLE, self.catalog, RuleOptions())  # type: ignore[arg-type]
        self.engine.deploy("table device", planned.plan, 0)
        self.catalog.lookup_tables["device"].change(policy or AnswerPolicy())
        run_script(self.engine, SCRIPT + statements, 0)

    def rows(self, relation: str) -> list[Any]:
        return [tuple(row.values()) for row in self.engine.relation(relation).rows()]


def shown(emissions: Sequence[Any]) -> list[Any]:
    """Statement, kind and values of each row that came."""
    return [
        (item.rule, *row.values()) if item.kind == "rows" else (item.rule, item.error)
        for item in apart(emissions)
        for row in item.inserted
    ]


def test_events_of_a_trigger_wait_in_order_and_nothing_else_does() -> None:
    world = World(f"{MERGE}; @name('beside') select dev from reading;")
    assert world.push(1, "a", "b", "a") == [("beside", "a"), ("beside", "b"), ("beside", "a")]
    assert world.asked() == ["a", "b"]
    assert world.say(2, "b", "S") == [] == world.rows("T")  # a is first
    assert world.say(3, "a", "N") == [("r", "a", "N"), ("r", "b", "S"), ("r", "a", "again")]
    assert world.rows("T") == [("a", "again"), ("b", "S")]
    world.push(4, "b")
    world.say(5, "b", "S")
    assert world.rows("T") == [("a", "again")]


def test_each_event_acts_in_a_step_of_its_own() -> None:
    acts = "@name('r') on reading as r merge W as w where w.dev = r.dev when not matched then insert"
    world = World(
        f"{acts} select r.dev as dev, {SITE} as site; @name('n') select count(*) as n, site from W;"
    )
    world.push(1, "a", "b")
    world.say(2, "b", "S")
    found = [row for row in world.say(3, "a", "N") if row[0] == "n"]
    assert found == [("n", 1, "N"), ("n", 2, "S")]  # two posts, one an event


def test_an_event_with_a_known_answer_acts_behind_the_other_statements_of_its_event() -> None:
    rule = (
        f"@Priority(9) @name('r') on reading as r set last = {SITE}; "
        "@name('s') select dev, last from reading;"
    )
    world = World(rule, AnswerPolicy(cache_ms=1000))
    world.push(1, "a")
    world.say(2, "a", "N")
    assert world.push(3, "a") == [("s", "a", "N"), ("r", "N")]
    assert world.catalog.requests == [Request("device", ("id",), ("a",))]  # asked once


def test_what_a_filter_of_the_event_alone_refuses_is_not_asked_for() -> None:
    world = World(f"@name('r') on reading(temp > 5) as r set last = {SITE};")
    world.push(1, "a")
    assert world.asked() == []
    world.push(2, "b", temp=6.0)
    assert world.asked() == ["b"]
    found = World("@name('r') select reading.dev, device.site from reading(temp > 5) "
                  "left join device on reading.dev = device.id")  # fmt: skip
    found.push(1, "a")
    assert found.asked() == []


def test_a_subquery_that_keeps_the_stream_has_what_the_filter_refuses() -> None:
    count = "(select count(*) from reading#keepall as k where k.dev = r.dev)"
    world = World(f"@name('r') select {SITE} as site, {count} as n from reading as r where temp > 5")
    world.push(1, "a")
    world.say(1, "a", "N")
    world.push(2, "a", temp=6.0)
    assert world.say(3, "a", "N") == [("r", "N", 2)]


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        (f"on reading as r update T as t set site = {SITE} where t.dev = r.dev", [("r", "a", "N")]),
        (f"on reading as r delete from T as t where t.dev = r.dev and {SITE} = 'N'", [("r", "a", "old")]),
        (f"on reading as r select t.dev, {SITE} as site from T as t where t.dev = r.dev", [("r", "a", "N")]),
        (f"on reading as r select and delete {SITE} as site, count(*) as n from T as t", [("r", "N", 1)]),
        (f"on reading as r insert into Unknown select * where {SITE} is null "
         f"insert into Known select *, {SITE} as site", [("k", "a", 1.0, "N")]),
        (f"on reading({SITE} = 'N') as r set last = r.dev", [("r", "a")]),
    ],
)  # fmt: skip
def test_every_statement_that_acts_can_ask(statement: str, found: list[Any]) -> None:
    world = World(
        f"@name('r') {statement}; @name('k') select * from Known; @name('u') select * from Unknown;"
    )
    world.engine.query("insert into T select 'a' as dev, 'old' as site")
    world.push(1, "a")
    assert world.say(2, "a", "N") == found


@pytest.mark.parametrize(("unanswered", "found"), [
    ("miss", [("r", "a", None), ("r", "b", "S")]),
    ("error", [("r", "table 'device' did not answer for id = 'a' within 100 ms"), ("r", "b", "S")]),
])  # fmt: skip
def test_after_its_time_an_event_acts_as_the_policy_says(unanswered: Any, found: list[Any]) -> None:
    world = World(MERGE, AnswerPolicy(timeout_ms=100, unanswered=unanswered))
    world.push(10, "a")
    world.push(50, "b")
    world.say(60, "b", "S")
    assert world.engine.next_deadline_ms() == 110
    assert shown(world.engine.advance(109)) == []
    assert shown(world.engine.advance(110)) == found


def test_a_snapshot_has_the_events_that_wait() -> None:
    world = World(MERGE)
    world.push(10, "a", "b")
    world.say(20, "b", "S")
    later = World(MERGE)
    for name in ("table device", "r"):
        later.engine.deploy(name, later.engine.queries[name].plan, 20, world.engine.snapshot(name))
    for each in (world, later):
        assert each.say(30, "a", "N") == [("r", "a", "N"), ("r", "b", "S")]
        assert each.rows("T") == [("a", "N"), ("b", "S")]


EVENT = {"dev": "a", "temp": 1.0}
JOINED = "from reading as r left join device on device.id = r.dev"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (f"select *, {SITE} as site from reading as r", ("a", 1.0, "N")),
        (f"select r.*, {SITE} as site from reading as r", ("a", 1.0, "N")),
        (f"select r as whole, {SITE} as site from reading as r", (EVENT, "N")),
        (f"select r as whole, device.site as site {JOINED}", (EVENT, "N")),
        (f"select * {JOINED}", (EVENT, {"id": "a", "site": "N"})),
    ],
)
def test_a_whole_event_does_not_show_what_was_asked_for(query: str, found: tuple[Any, ...]) -> None:
    world = World(f"@name('r') {query};")
    world.push(1, "a")
    assert world.say(2, "a", "N") == [("r", *found)]


@pytest.mark.parametrize(
    ("statement", "instead"),
    [
        (f"@name('r') on pattern [every r=reading(temp > 5)] set last = {SITE}", "INSERT INTO found SELECT"),
        (f"@name('r') select {SITE} as site from pattern [every r=reading]", "INSERT INTO found SELECT"),
        (f"@name('r') on W as r set last = {SITE}", "INSERT INTO changed SELECT \\* FROM W"),
        (f"@name('r') select {SITE} as site from W as r", "INSERT INTO changed SELECT \\* FROM W"),
        ("@name('r') select device.site from W left join device on W.dev = device.id",
         "INSERT INTO changed SELECT"),
    ],
)  # fmt: skip
def test_what_cannot_ask_says_how_another_rule_does(statement: str, instead: str) -> None:
    with pytest.raises(SqlError, match=f"(?s)cannot be asked here.*{instead}"):
        World(statement)


def test_matches_and_rows_of_windows_ask_through_a_stream() -> None:
    """The way that the error names."""
    world = World(f"""
    insert into found select r.dev as dev from pattern [every r=reading(temp > 5)];
    insert into changed select * from W;
    @name('r') on found as r merge T as t where t.dev = r.dev
      when not matched then insert select r.dev as dev, {SITE} as site;
    @name('c') select changed.dev, device.site from changed left join device on changed.dev = device.id;
    insert into W select dev, '' as site from reading(temp < 5);
    """)  # fmt: skip
    world.push(1, "a", temp=6.0)
    assert ("r", "a", "N") in world.say(2, "a", "N")
    world.push(3, "b")
    assert ("c", "b", "S") in world.say(4, "b", "S")
