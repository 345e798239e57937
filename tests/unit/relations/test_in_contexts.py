"""Named windows, tables, variables and triggers that each partition of a context has for itself."""

from __future__ import annotations

import pytest

from sql import Emission, Engine, SqlError, run_script
from sql.algebra.context.selectors import selector_of
from tests.support.engines import engine_of

TYPES = """
create schema Order(shop string, item string, n int);
create schema Close(shop string);
create context PerShop partition by shop from Order, shop from Close;
"""


def started(text: str) -> Engine:
    return engine_of(TYPES + text)


def order(engine: Engine, shop: str, item: str, n: int) -> list[Emission]:
    return [*engine.push("Order", [{"shop": shop, "item": item, "n": n}], engine.now_ms or 0)]


STOCK = """
context PerShop create table Stock (item string primary key, sold sum(int));
context PerShop into table Stock select sum(n) as sold from Order group by item;
@name('sold') context PerShop select item, Stock[item].sold as sold from Order;
"""


def test_a_question_goes_over_all_partitions_or_the_chosen_ones() -> None:
    engine = started(STOCK)
    order(engine, "a", "nut", 2)
    order(engine, "b", "nut", 5)
    text = "select item, sold from Stock"
    assert sorted(row["sold"] for row in engine.query(text).rows) == [2, 5]
    of_b = engine.query(text, selector=selector_of({"keys": [["b"]]}))
    assert of_b.rows == [{"item": "nut", "sold": 5}]


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
