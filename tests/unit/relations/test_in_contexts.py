"""Named windows, tables, variables and triggers that each partition of a context has for itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from sql import Catalog, Emission, Engine, SqlError, run_script
from sql.algebra.context.selectors import selector_of

TYPES = """
create schema Order(shop string, item string, n int);
create schema Close(shop string);
create context PerShop partition by shop from Order, shop from Close;
"""


def started(text: str) -> Engine:
    engine = Engine(Catalog())
    run_script(engine, TYPES + text, 0)
    return engine


def order(engine: Engine, shop: str, item: str, n: int) -> list[Emission]:
    return [*engine.push("Order", [{"shop": shop, "item": item, "n": n}], engine.now_ms or 0)]


def rows(emissions: Sequence[Emission], rule: str) -> list[dict[str, Any]]:
    return [row for emission in emissions if emission.rule == rule for row in emission.inserted]


STOCK = """
context PerShop create table Stock (item string primary key, sold sum(int));
context PerShop into table Stock select sum(n) as sold from Order group by item;
@name('sold') context PerShop select item, Stock[item].sold as sold from Order;
"""


def test_each_partition_has_a_table_of_its_own() -> None:
    engine = started(STOCK)
    order(engine, "a", "nut", 2)
    order(engine, "b", "nut", 5)
    assert rows(order(engine, "a", "nut", 1), "sold") == [{"item": "nut", "sold": 3}]
    assert len(engine.relation("Stock")) == 2


def test_a_question_goes_over_all_partitions_or_the_chosen_ones() -> None:
    engine = started(STOCK)
    order(engine, "a", "nut", 2)
    order(engine, "b", "nut", 5)
    text = "select item, sold from Stock"
    assert sorted(row["sold"] for row in engine.query(text).rows) == [2, 5]
    of_b = engine.query(text, selector=selector_of({"keys": [["b"]]}))
    assert of_b.rows == [{"item": "nut", "sold": 5}]


def test_a_row_from_outside_goes_to_the_partition_of_its_key() -> None:
    engine = started("""
        context PerShop create window Open#keepall as Order;
        insert into Open select * from Order(n > 0);
        @name('count') context PerShop select shop, count(*) as c from Open;
    """)
    order(engine, "a", "nut", 1)
    order(engine, "b", "nut", 1)
    assert rows(order(engine, "a", "bolt", 1), "count") == [{"shop": "a", "c": 2}]


def test_a_trigger_deletes_in_its_partition_only() -> None:
    engine = started("""
        context PerShop create window Open#keepall as Order;
        context PerShop insert into Open select * from Order;
        @name('gone') context PerShop on Close delete from Open;
    """)
    for shop in ("a", "a", "b"):
        order(engine, shop, "nut", 1)
    out = engine.push("Close", [{"shop": "a"}], 0)
    assert len(rows(out, "gone")) == 2
    assert [row["shop"] for row in engine.query("select shop from Open").rows] == ["b"]


def test_relations_of_partitions_come_back_from_a_snapshot() -> None:
    first = started(STOCK)
    order(first, "a", "nut", 2)
    order(first, "b", "nut", 5)
    states = json.loads(json.dumps({name: first.snapshot(name) for name in first.queries}))
    second = started(STOCK)
    for name, state in states.items():
        second.restore(name, state)
    assert rows(order(second, "a", "nut", 1), "sold") == [{"item": "nut", "sold": 3}]


@pytest.mark.parametrize(
    "statement",
    [
        "into table Stock select sum(n) as sold from Order group by item",
        "on Close delete from Stock",
        "on Close select item from Stock",
        "select Stock['nut'].sold as sold from Order",
    ],
)
def test_statements_outside_the_context_may_not_use_its_table(statement: str) -> None:
    engine = started(STOCK)
    with pytest.raises(SqlError, match="PerShop"):
        run_script(engine, statement, 0)
