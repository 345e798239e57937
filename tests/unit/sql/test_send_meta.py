"""sendMetaToSink: rows that stand for one message say which."""

from __future__ import annotations

from typing import Any

import pytest

from sql import Catalog, Engine, RuleOptions, SqlError, parse, plan_rule

META = {"topic": "plant/1", "messageid": 7}


def catalog() -> Catalog:
    found = Catalog()
    for statement in parse('CREATE STREAM m () WITH (DATASOURCE="plant/+")'):
        found.define(statement)  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize(
    ("sql", "row"),
    [("SELECT dev FROM m WHERE n > 1", {"dev": "a"}), ("SELECT * FROM m", {"dev": "a", "n": 5})],
)
def test_the_metadata_is_a_column_of_its_own(sql: str, row: dict[str, Any]) -> None:
    engine = Engine(catalog())
    engine.deploy("r", plan_rule(sql, engine.catalog, RuleOptions(send_meta=True)), 0)
    (emission,) = engine.push("m", [{"dev": "a", "n": 5, "$meta": META}], 0)
    assert emission.inserted == [{**row, "__meta": META}]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) AS c FROM m GROUP BY COUNTWINDOW(2)",
        "SELECT n FROM m#length(2)",
        "SELECT sum(n) FROM m",
    ],
)
def test_where_a_row_stands_for_many_messages_it_is_an_error(sql: str) -> None:
    with pytest.raises(SqlError, match="B609 sendMetaToSink"):
        plan_rule(sql, catalog(), RuleOptions(send_meta=True))
