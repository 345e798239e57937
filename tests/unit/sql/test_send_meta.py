"""sendMetaToSink: rows that stand for one message say which."""

from __future__ import annotations

from typing import Any

import pytest

from sql import RuleOptions, SqlError, plan_rule
from tests.support.streams import catalog_of, engine_of

META = {"topic": "plant/1", "messageid": 7}
STREAM = 'CREATE STREAM m () WITH (DATASOURCE="plant/+")'


@pytest.mark.parametrize(
    ("sql", "row"),
    [("SELECT dev FROM m WHERE n > 1", {"dev": "a"}), ("SELECT * FROM m", {"dev": "a", "n": 5})],
)
def test_the_metadata_is_a_column_of_its_own(sql: str, row: dict[str, Any]) -> None:
    (emission,) = engine_of(STREAM, sql, send_meta=True).push("m", [{"dev": "a", "n": 5, "$meta": META}], 0)
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
        plan_rule(sql, catalog_of(STREAM), RuleOptions(send_meta=True))
