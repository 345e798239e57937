"""Questions, and columns of tables, that are refused say one thing: what is wrong with them."""

from __future__ import annotations

import re

import pytest

from sql import Catalog, Engine
from sql.engine.script import run_script
from sql.errors import SqlError
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
