"""Rows of relations hold their columns as fields: columns of any name, and rows given out before a change."""

from __future__ import annotations

from typing import Any

import pytest

from sql import Engine
from sql.algebra.row_blocks import plain
from sql.algebra.table.row import TableRow, row_class
from sql.rows import EVENT_FIELDS, field_name
from tests.support.engines import engine_of

NAMES = ("row", "seq", "time_ms", "group", "key", "stale", "put", "class", "_x", "__dict__", "c_7", "größe")


def shown(engine: Engine, name: str, stream: str, row: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a statement for one event."""
    found = [each for each in engine.push(stream, [row], 1) if each.rule == name]
    assert not [each for each in found if each.kind == "error"]
    return [row for each in found for row in each.inserted]


def test_fields_that_a_column_may_not_hide_are_known() -> None:
    own = {name for name in dir(row_class((), TableRow)) if not name.startswith("_")}
    assert own == EVENT_FIELDS
    assert len({field_name(name) for name in NAMES}) == len(NAMES)
    assert not {field_name(name) for name in NAMES} & own


@pytest.mark.parametrize(
    "declared", ["create table R (k string primary key, {})", "create window R#keepall as (k string, {})"]
)
@pytest.mark.parametrize("name", NAMES)
def test_a_column_may_have_any_name(declared: str, name: str) -> None:
    column = f"`{name}`"
    script = (
        f"create schema E (k string, {column} int); create schema S (k string);"
        f"{declared.format(f'{column} int')};"
        f"on E as e merge R as r where r.k = e.k when matched then update set {column} = e.{column} "
        f"when not matched then insert select e.k as k, e.{column} as {column};"
        f"@name('join') select r.{column} as v from S as s unidirectional, R as r where r.k = s.k;"
        f"@name('asked') select (select r.{column} from R as r where r.k = s.k) as v from S as s;"
        f"@name('chosen') on S as s select r.{column} as v, r as whole from R as r where r.k = s.k;"
    )
    engine = engine_of(script)
    for value in (1, 2):
        engine.push("E", [{"k": "a", name: value}], 0)
        for statement in ("join", "asked"):
            assert shown(engine, statement, "S", {"k": "a"}) == [{"v": value}]
        assert shown(engine, "chosen", "S", {"k": "a"}) == [{"v": value, "whole": {"k": "a", name: value}}]
    states = {rule: query.snapshot() for rule, query in engine.queries.items()}
    again = engine_of(script)
    for rule, state in states.items():
        again.queries[rule].restore(plain(state))
    assert shown(again, "join", "S", {"k": "a"}) == [{"v": 2}]
    assert again.relation("R").rows() == [{"k": "a", name: 2}]


def test_rows_that_were_handed_out_stay_as_they_were() -> None:
    engine = engine_of(
        "create schema E (k string, n int); create table T (k string primary key, n int);"
        "@name('m') on E as e merge T as t where t.k = e.k when matched then update set n = t.n + e.n "
        "when not matched then insert select e.k as k, e.n as n;"
    )
    found = [
        (each.inserted, [*each.removed])
        for each in engine.push("E", [{"k": "a", "n": 1}, {"k": "a", "n": 2}, {"k": "a", "n": 3}], 0)
    ]
    before = engine.relation("T").rows()
    engine.push("E", [{"k": "a", "n": 4}], 0)
    assert found == [
        ([{"k": "a", "n": 1}], []),
        ([{"k": "a", "n": 3}], [{"k": "a", "n": 1}]),
        ([{"k": "a", "n": 6}], [{"k": "a", "n": 3}]),
    ]
    assert (before, engine.relation("T").get("a")) == ([{"k": "a", "n": 6}], {"k": "a", "n": 10})
