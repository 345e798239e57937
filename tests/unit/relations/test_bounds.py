"""How many rows a table or named window may hold, and how long a row stays."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rules.compile import compile_rules
from rules.drive import make_table, statement_of
from rules.loader import load_text, unite
from sql import Emission, Engine

RULES = """
streams: ['CREATE STREAM reading (k STRING, v BIGINT) WITH (DATASOURCE="t")']
tables:
  last: {sql: "create table last (k string primary key, v int)", BOUNDS}
  sums: {sql: "create table sums (k string primary key, total sum(int))", BOUNDS}
  recent: {sql: "create window recent#keepall as reading", BOUNDS}
rules:
  put:
    sql: >-
      on reading as r merge last as l where l.k = r.k
      when matched then update set v = r.v when not matched then insert select r.k as k, r.v as v
  add: {sql: into table sums select sum(v) as total from reading group by k}
  keep: {sql: insert into recent select * from reading}
  told: {sql: "select irstream k, v from recent", actions: [log: {}]}
"""


@pytest.fixture(autouse=True)
def _sinks() -> None:
    from edge.plugins.sink_kinds import register_sinks

    register_sinks()


def started(bounds: str, rules: str = RULES) -> Engine:
    compiled = compile_rules(unite([load_text(rules.replace("BOUNDS", bounds))]))
    assert not compiled.problems, [problem.render() for problem in compiled.problems]
    engine = Engine(compiled.catalog)
    for name, table in compiled.tables.items():
        make_table(engine, name, table, 0)
    for name, rule in compiled.rules.items():
        engine.deploy(name, rule.plan, 0)
    return engine


def put(engine: Engine, at_ms: int, *rows: tuple[str, int]) -> list[Emission]:
    return [*engine.push("reading", [{"k": k, "v": v} for k, v in rows], at_ms)]


def keys(engine: Engine, table: str) -> list[Any]:
    return [row["k"] for row in engine.relation(table)]


def counts(engine: Engine, table: str) -> tuple[int, ...]:
    found = engine.counters(statement_of(table))
    return found["refused"], found["expired"], found["dropped"]


ALONE = """
streams: ['CREATE STREAM reading (k STRING, v BIGINT) WITH (DATASOURCE="t")']
tables: {last: {sql: "create table last (k string primary key, v int)", BOUNDS}}
rules:
  put:
    sql: >-
      on reading as r merge last as l where l.k = r.k
      when matched then update set v = r.v when not matched then insert select r.k as k, r.v as v
"""


def test_a_row_that_made_room_is_not_found_by_a_later_event_of_its_batch() -> None:
    engine = started("maxRows: 2, whenFull: oldest", ALONE)
    put(engine, 0, ("a", 1), ("b", 1))
    put(engine, 1, ("c", 1), ("a", 2))  # c in the place of a, then a in the place of b
    assert [(row["k"], row["v"]) for row in engine.relation("last")] == [("c", 1), ("a", 2)]


def test_a_row_that_an_event_of_a_batch_inserts_is_found_by_the_next() -> None:
    for bounds in ("", "maxRows: 1000"):
        engine = started(bounds, ALONE)
        put(engine, 0, ("a", 1), ("a", 2), ("b", 3), ("a", 4))
        assert [(row["k"], row["v"]) for row in engine.relation("last")] == [("a", 4), ("b", 3)]


def test_a_row_too_many_is_refused_and_counted() -> None:
    engine = started("maxRows: 2")
    out = put(engine, 0, ("a", 1), ("b", 1), ("c", 1), ("a", 2))
    errors = [emission.error for emission in out if emission.kind == "error"]
    # c thrice, and a in `recent`
    assert len(errors) == 4 and all("maxRows" in (error or "") for error in errors)
    assert keys(engine, "last") == keys(engine, "sums") == keys(engine, "recent") == ["a", "b"]
    assert counts(engine, "last") == (1, 0, 0)
    assert counts(engine, "recent") == (2, 0, 0)


def test_the_row_written_longest_ago_makes_room() -> None:
    engine = started("maxRows: 2, whenFull: oldest")
    put(engine, 0, ("a", 1), ("b", 1), ("a", 2))
    out = put(engine, 1, ("c", 1))
    assert keys(engine, "last") == keys(engine, "sums") == ["a", "c"]  # a was written after b
    assert keys(engine, "recent") == ["a", "c"]  # every event is a row: a, b and a again
    assert [row for item in out if item.rule == "told" for row in item.removed] == [{"k": "b", "v": 1}]
    assert counts(engine, "last") == (0, 0, 1)


def test_rows_that_nobody_writes_go_after_their_time() -> None:
    engine = started("ttl: 10s")
    put(engine, 0, ("a", 1), ("b", 1))
    put(engine, 4000, ("a", 2))
    out = engine.advance(10_000)
    assert keys(engine, "last") == keys(engine, "sums") == ["a"]
    assert keys(engine, "recent") == ["a"]
    assert sorted(row["k"] for item in out if item.rule == "told" for row in item.removed) == ["a", "b"]
    engine.advance(14_000)
    assert keys(engine, "last") == keys(engine, "sums") == keys(engine, "recent") == []
    assert counts(engine, "last") == (0, 2, 0)


def test_the_age_of_rows_is_in_the_snapshot() -> None:
    first = started("ttl: 10s")
    put(first, 0, ("a", 1), ("b", 1))
    put(first, 4000, ("a", 2))
    states = json.loads(json.dumps({name: first.snapshot(name) for name in first.queries}))
    second = started("ttl: 10s")
    for name, state in states.items():
        second.restore(name, state)
    second.advance(10_000)
    assert keys(second, "last") == keys(second, "sums") == keys(second, "recent") == ["a"]


def test_bounds_change_while_rows_are_there() -> None:
    engine = started("maxRows: 10")
    put(engine, 0, ("a", 1), ("b", 1))
    bounds = engine.catalog.relations["last"].bounded.bounds
    last = engine.catalog.relations["last"]
    last.bounded.change(type(bounds)(max_rows=2, oldest_first=True, ttl_ms=5000), last.content())
    engine.timers.schedule_all()
    put(engine, 1000, ("c", 1))
    assert keys(engine, "last") == ["b", "c"]
    engine.advance(6000)
    assert keys(engine, "last") == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ('TYPE="mqtt"', "has no KEY"),
        ('TYPE="mqtt", KEY="kk"', "is no column"),
    ],
)
def test_wrong_lookup_tables_are_refused_with_their_place(options: str, message: str) -> None:
    text = (
        f"streams:\n  - >-\n    CREATE TABLE t (k STRING) WITH (KIND='lookup', DATASOURCE='t', {options})\n"
    )
    problems = compile_rules(unite([load_text(text)])).problems
    assert [(problem.code, problem.line) for problem in problems if message in problem.render()] == [
        ("B532", 3)
    ]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("t: create table u (k string primary key)", "declares 'u', but its key is 't'"),
        ("t: select * from reading", "a table is CREATE TABLE or CREATE WINDOW"),
        ("t: create window t as reading", "says which rows it keeps"),
        ("t: 'create window t#keepall as select istream k from reading'", "istream has no effect here"),
        ("t: {sql: create table t (k string primary key), maxRows: 0}", "maxRows"),
        ("t: {sql: create table t (k string primary key), ttl: soon}", "ttl"),
        ("t: 'create table t (k string primary key); create index i on t (kk)'", "unknown column 'kk'"),
        ("reading: create table reading (k string primary key)", "declared already"),
    ],
)
def test_wrong_declarations_are_refused_with_their_place(table: str, message: str) -> None:
    text = f"streams: ['CREATE STREAM reading (k STRING) WITH (DATASOURCE=\"t\")']\ntables:\n  {table}\n"
    problems = compile_rules(unite([load_text(text)])).problems
    assert [problem.line for problem in problems if message in problem.render()] == [3], problems
