"""Joins with tables that a store is asked for: order, time limits, policies, caches, snapshots.
The store is the test, which answers when it likes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from sql import Emission
from sql.binder.rule import plan_lookup, plan_rule
from sql.engine.answers import answer
from sql.errors import SqlError
from sql.language import parse
from sql.plan.lookup_plan import AnswerPolicy, Request
from sql.plan.options import RuleOptions
from tests.unit.sql.lookup_world import LookupWorld

DEVICE = 'CREATE TABLE device (id STRING, site STRING) WITH (DATASOURCE="device", TYPE="sql", KIND="lookup")'
SITE = 'CREATE TABLE site () WITH (DATASOURCE="s", TYPE="http", KIND="lookup")'
READING = 'CREATE STREAM reading (dev STRING, temp FLOAT) WITH (DATASOURCE="p")'
LEFT = "SELECT dev, device.site AS site, temp FROM reading LEFT JOIN device ON reading.dev = device.id"
INNER = LEFT.replace("LEFT", "INNER")


class World(LookupWorld):
    """An engine with the two tables and one rule. `is_asked` False: the tables hold what they are given."""

    def __init__(self, rule: str, *, is_asked: bool = True, policy: AnswerPolicy | None = None) -> None:
        super().__init__(shown)
        if not is_asked:
            self.catalog.requests = None
        (stream,) = parse(READING)
        self.catalog.define(stream)  # type: ignore[arg-type]
        for text in (DEVICE, SITE):
            (statement,) = parse(text)
            self.catalog.define(statement)  # type: ignore[arg-type]
            planned = plan_lookup(statement, text, self.catalog, RuleOptions())  # type: ignore[arg-type]
            self.engine.deploy(f"table {planned.declaration.name}", planned.plan, 0)
            if policy is not None:
                self.catalog.lookup_tables[planned.declaration.name].change(policy)
        self.plan = plan_rule(rule, self.catalog)
        self.engine.deploy("r", self.plan, 0)


def shown(emissions: Sequence[Emission]) -> list[Any]:
    return [row if item.kind == "rows" else item.error for item in emissions for row in item.inserted]


def sites(rows: list[Any]) -> list[Any]:
    return [(row["dev"], row["site"]) for row in rows]


def test_events_wait_in_order_and_are_asked_for_meanwhile() -> None:
    world = World(LEFT)
    assert world.push(10, "a", "b", None, "a") == []
    assert world.asked() == ["a", "b"]
    assert world.say(20, "b", "S") == []  # a is first
    assert sites(world.say(30, "a", "N1", "N2")) == [
        ("a", "N1"), ("a", "N2"), ("b", "S"), (None, None), ("a", "N1"), ("a", "N2"),
    ]  # fmt: skip
    assert world.push(40, "a") == []
    assert world.asked() == ["a"]  # nothing is cached
    assert world.say(41, "a") == [{"dev": "a", "site": None, "temp": 1.0}]


def test_an_inner_join_drops_what_has_no_row() -> None:
    world = World(INNER)
    world.push(10, "a", "b", None)
    assert world.say(11, "b", "S") == []
    assert sites(world.say(12, "a")) == [("b", "S")]


def test_what_where_refuses_is_not_asked_for() -> None:
    world = World(f"{LEFT} WHERE temp > 0 AND device.site != 'X'")
    world.push(10, "a", temp=-1.0)
    assert world.asked() == []
    world.push(11, "b", "c")
    assert world.asked() == ["b", "c"]
    world.say(12, "b", "X")
    assert sites(world.say(12, "c", "Y")) == [("c", "Y")]


@pytest.mark.parametrize("unanswered", ["miss", "error"])
def test_after_its_time_an_event_goes_on_as_the_policy_says(unanswered: Any) -> None:
    world = World(LEFT, policy=AnswerPolicy(timeout_ms=100, unanswered=unanswered))
    world.push(10, "a")
    world.push(50, "b")
    world.say(60, "b", "S")
    assert world.engine.next_deadline_ms() == 110
    assert shown(world.engine.advance(109)) == []
    why = "table 'device' did not answer for id = 'a' within 100 ms"
    first = why if unanswered == "error" else {"dev": "a", "site": None, "temp": 1.0}
    assert shown(world.engine.advance(110)) == [first, {"dev": "b", "site": "S", "temp": 1.0}]
    assert world.engine.counters("r")["unanswered"] == world.counts["unanswered"] == 1
    world.asked()
    world.push(120, "a")
    assert world.asked() == ["a"]  # the request that was given up is made anew
    assert world.engine.next_deadline_ms() == 220


@pytest.mark.parametrize("unanswered", ["miss", "error"])
def test_after_a_refusal_an_event_goes_on_at_once_as_the_policy_says(unanswered: Any) -> None:
    policy = AnswerPolicy(timeout_ms=100, unanswered=unanswered, cache_ms=100, cache_misses=True)
    world = World(LEFT, policy=policy)
    world.push(10, "a", "b")
    world.say(11, "b", "S")
    why = "table 'device' refused id = 'a': no such table"
    first = why if unanswered == "error" else {"dev": "a", "site": None, "temp": 1.0}
    assert world.refuse(12, "a", "no such table") == [first, {"dev": "b", "site": "S", "temp": 1.0}]
    assert world.engine.counters("r")["unanswered"] == world.counts["unanswered"] == 1
    world.asked()
    world.push(20, "a")
    assert world.asked() == ["a"]  # a refusal is not cached as a miss


def test_of_too_many_events_the_first_goes_on_without_its_answer() -> None:
    world = World(LEFT, policy=AnswerPolicy(waiting_max=2))
    assert world.push(10, "a", "b") == []
    assert sites(world.push(11, "c", "d")) == [("a", None), ("b", None)]
    world.say(12, "d", "D")
    assert sites(world.say(12, "c", "C")) == [("c", "C"), ("d", "D")]


def test_answers_serve_for_their_time_and_misses_where_that_is_wanted() -> None:
    world = World(LEFT, policy=AnswerPolicy(cache_ms=100, keys_max=2))
    world.push(0, "a", "b")
    world.say(10, "a", "N")
    world.say(10, "b")
    world.asked()
    assert sites(world.push(109, "a")) == [("a", "N")]
    assert world.asked() == []
    world.push(109, "b")
    assert world.asked() == ["b"]  # misses are not kept
    world.say(109, "b")
    world.push(110, "a")
    assert world.asked() == ["a"]  # its time is over
    for device in ("a", "c", "d"):
        world.push(111, device)
        world.say(111, device, "N")
    world.asked()
    world.push(112, "d", "c", "a")
    assert world.asked() == ["a"]  # of three answers the oldest went
    misses = World(LEFT, policy=AnswerPolicy(cache_ms=100, cache_misses=True))
    misses.push(0, "a")
    misses.say(1, "a")
    assert sites(misses.push(2, "a")) == [("a", None)]
    assert misses.catalog.lookup_tables["device"].counts == {
        "requests": 1, "cached": 1, "found": 0, "missed": 2, "unanswered": 0,
    }  # fmt: skip


def test_one_table_is_asked_for_what_another_has_answered() -> None:
    world = World(
        "SELECT dev, city FROM reading INNER JOIN device ON reading.dev = device.id "
        "LEFT JOIN site ON site.name = device.site AND site.city != 'Ulm'"
    )
    world.push(10, "a")
    assert world.say(20, "a", "N", "S") == []
    requests = world.catalog.requests or []
    assert [request.key for request in requests] == [("a",), ("N",), ("S",)]
    assert shown(answer(world.engine, requests[1], [{"name": "N", "city": "Kiel"}], 30)) == []
    found = shown(answer(world.engine, requests[2], [{"name": "S", "city": "Ulm"}], 40))
    assert found == [{"dev": "a", "city": "Kiel"}, {"dev": "a", "city": None}]


def test_the_columns_of_the_key_are_read() -> None:
    world = World("SELECT device.site AS site FROM reading LEFT JOIN device ON reading.dev = device.id")
    assert world.plan.reads == {"reading": frozenset({"dev"})}


def test_windows_hold_the_rows_that_were_found_when_events_came() -> None:
    rule = (
        "SELECT device.site AS site, count(*) AS n FROM reading INNER JOIN device ON reading.dev = device.id"
    )
    world = World(f"{rule} GROUP BY device.site, COUNTWINDOW(3)")
    world.push(10, "a", "b", "c", "b")
    world.say(11, "b", "S")
    world.say(11, "a", "N")
    assert world.say(12, "c") == [{"site": "N", "n": 1}, {"site": "S", "n": 2}]


def test_a_snapshot_has_who_waits_and_what_is_known() -> None:
    rule = LEFT.replace("dev, ", "dev, lag(temp) AS before, ")
    world = World(rule, policy=AnswerPolicy(cache_ms=1000))
    world.push(10, "a", "b", temp=1.0)
    world.say(20, "b", "S")
    later = World(rule)
    for name in ("table device", "table site", "r"):
        state = world.engine.snapshot(name)
        plan = later.engine.queries[name].plan
        later.engine.deploy(name, plan, 20, state)
    assert list(later.catalog.lookup_tables["device"].waiting) == [Request("device", ("id",), ("a",))]
    later.asked()
    for each in (world, later):
        rows = each.say(30, "a", "N")
        assert [(row["site"], row["before"]) for row in rows] == [("N", None), ("S", 1.0)]
        assert sites(each.push(40, "b", temp=2.0)) == [("b", "S")]
    assert later.asked() == []


def test_without_anybody_to_ask_a_table_holds_what_it_is_given() -> None:
    world = World(LEFT, is_asked=False)
    world.engine.push("device", [{"id": "a", "site": "N"}, {"id": "a", "site": "N2"}], 5)
    assert sites(world.push(10, "a", "b")) == [("a", "N"), ("a", "N2"), ("b", None)]


def test_a_key_that_is_an_object_is_an_error_of_its_event() -> None:
    world = World(LEFT)
    out = world.engine.push("reading", [{"dev": {"x": 1}, "temp": 1.0}, {"dev": None, "temp": 2.0}], 10)
    assert [item.kind for item in out] == ["error", "rows"]
    assert "cannot be asked for a list or an object" in str(out[0].error)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("SELECT * FROM device", "has no events"),
        (LEFT.replace("LEFT", "FULL"), "INNER JOIN or LEFT JOIN"),
        (LEFT.replace("=", ">"), "no key"),
        (LEFT.replace("device.site", "device.place"), "unknown column 'place'"),
        ("SELECT * FROM pattern [every r=reading] LEFT JOIN device ON r.dev = device.id",
         "cannot be asked here"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_refused(rule: str, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        World(rule)
