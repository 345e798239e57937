"""Questions, and columns of tables, that are refused say one thing: what is wrong with them."""

from __future__ import annotations

import re

import pytest

from sql import Catalog, Engine
from sql.engine.script import run_script
from sql.errors import DataError, SqlError
from sql.language import parse
from sql.syntax import CreateStream

DECLARED = """
CREATE STREAM m () WITH (DATASOURCE="m");
CREATE TABLE newest () WITH (DATASOURCE="n", TYPE="memory", KIND="scan")
"""


@pytest.fixture
def engine() -> Engine:
    engine = Engine(Catalog())
    for statement in parse(DECLARED):
        assert isinstance(statement, CreateStream)
        engine.catalog.define(statement)
    run_script(engine, "create table Limits (dev string primary key);", 0)
    return engine


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("m", "B557 'm' is a stream: it keeps no rows to ask for"),
        ("newest", "B557 'newest' is a scan table: it keeps no rows to ask for"),
        ("Limit", "B202 unknown named window or table 'Limit'"),
    ],
)
def test_what_keeps_no_rows_is_told_once(engine: Engine, source: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        engine.query(f"select * from `{source}` limit 5", 1)
    (problem,) = caught.value.problems
    assert f"{problem.code} {problem.message}" == message


def test_a_table_of_a_like_name_is_proposed(engine: Engine) -> None:
    with pytest.raises(SqlError, match="did you mean 'Limits'"):
        engine.query("select * from Limit", 1)


def test_a_table_of_no_like_name_has_a_remedy(engine: Engine) -> None:
    with pytest.raises(SqlError, match="hint: declare it with CREATE WINDOW or CREATE TABLE"):
        engine.query("select * from zzz", 1)


def test_an_insert_names_the_columns_that_want_values(engine: Engine) -> None:
    with pytest.raises(SqlError, match="B557 values for dev are expected, and there are 2"):
        engine.query("insert into Limits values ('a', 'b')", 1)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("min()", "1:19: B310 min() takes at least 1 argument, not 0"),
        ("nth(int)", "1:19: B310 nth() takes at least 2 arguments, not 1"),
    ],
)
def test_an_aggregating_column_names_what_it_aggregates(engine: Engine, column: str, message: str) -> None:
    with pytest.raises(SqlError, match=re.escape(message)):
        run_script(engine, f"create table T (x {column})", 0)


@pytest.mark.parametrize(
    ("question", "place"),
    [
        ("update Texts set n = n + 1", "1:22: cannot evaluate n + 1"),
        ("delete from Texts where n + 1 > 0", "1:25: cannot evaluate n + 1 > 0"),
        ("insert into Texts(k, n) values ('c', (select max(n) from Texts))", "1:38: cannot evaluate"),
        ("select n + 1 from Texts", "1:8: cannot evaluate n + 1"),
    ],
)
def test_what_cannot_be_evaluated_has_its_place_and_changes_nothing(question: str, place: str) -> None:
    engine = Engine(Catalog())
    run_script(engine, "create schema E(k string, n int); create window Texts#keepall as E;", 0)
    run_script(engine, "insert into Texts select * from E", 0)
    engine.push("E", [{"k": "a", "n": 1}, {"k": "b", "n": "one"}], 1)
    with pytest.raises(DataError, match=re.escape(place)):
        engine.query(question, 2)
    assert engine.relation("Texts").rows() == [{"k": "a", "n": 1}, {"k": "b", "n": "one"}]


@pytest.mark.parametrize(
    "declared", ["create table T(k string primary key)", "create window T#keepall(k string)"]
)
def test_a_relation_that_is_gone_is_unknown(engine: Engine, declared: str) -> None:
    (name,) = run_script(engine, declared, 0)
    engine.remove(name)
    with pytest.raises(SqlError, match="B202 unknown"):
        engine.query("select * from T", 1)
    with pytest.raises(SqlError, match="B202 unknown"):
        run_script(engine, "select (select count(*) from T) as c from m", 1)


@pytest.mark.parametrize(
    "declared", ["create table T(k string primary key)", "create window T#keepall(k string)"]
)
def test_a_declaration_that_is_refused_leaves_nothing(engine: Engine, declared: str) -> None:
    with pytest.raises(SqlError, match="B810 unknown context"):
        run_script(engine, f"context nowhere {declared}", 0)
    with pytest.raises(SqlError, match="B202 unknown"):
        engine.query("select * from T", 1)
    run_script(engine, "insert into T select 1 as k from m", 0)


@pytest.mark.parametrize(
    "refused",
    [
        "on F merge W as w where w.k = F.k when matched then update set bad = 1 "
        "when not matched then insert into Log select F.k as k",
        "on F insert into Log select k where bad > 1",
        "on F insert into Other select k where k > 1 insert into Log select bad",
    ],
)
def test_what_is_refused_declares_no_stream(engine: Engine, refused: str) -> None:
    run_script(engine, "create schema F(k bigint); create window W#keepall as F", 0)
    known = set(engine.catalog.streams)
    with pytest.raises(SqlError, match="B201 unknown column 'bad'"):
        run_script(engine, refused, 0)
    assert set(engine.catalog.streams) == known
