"""INSERT as a question answers the rows it was given, whatever the data windows make of them."""

from __future__ import annotations

import pytest

from sql import Engine
from sql.errors import DataError
from tests.support.engines import engine_of

DECLARED = ["window R#keepall as (k string, n int)", "table R (k string primary key, n int)"]
A, B, C = {"k": "a", "n": 1}, {"k": "a", "n": 2}, {"k": "b", "n": 3}


def answer(engine: Engine, question: str) -> list[dict[str, object]]:
    """The rows that answer a question."""
    return engine.query(question, 1).rows


@pytest.mark.parametrize(
    ("windows", "kept"),
    [
        ("keepall", [A, B, C]),
        ("firstunique(k)", [A, C]),
        ("firstlength(1)", [A]),
        ("sort(1, n)", [A]),
        ("length_batch(2)", [C]),
        ("time_batch(1 sec)", [A, B, C]),
    ],
)
def test_rows_are_answered_that_a_data_window_refuses_or_releases(
    windows: str, kept: list[dict[str, object]]
) -> None:
    engine = engine_of(f"create window W#{windows} as (k string, n int)")
    assert answer(engine, "insert into W values ('a', 1)") == [A]
    assert answer(engine, "insert into W (n, k) values (2, 'a'), (3, 'b')") == [B, C]
    assert answer(engine, "select * from W") == kept


def test_a_column_left_out_is_null() -> None:
    engine = engine_of("create window W#length_batch(2) as (k string, n int)")
    assert answer(engine, "insert into W (n) values (1)") == [{"k": None, "n": 1}]


@pytest.mark.parametrize("column", ["n", "n btree"])
@pytest.mark.parametrize("declared", DECLARED)
def test_rows_of_one_unique_key_are_refused_together(declared: str, column: str) -> None:
    engine = engine_of(f"create {declared}; create unique index I on R ({column})")
    with pytest.raises(DataError, match="unique index 'I'"):
        answer(engine, "insert into R values ('a', 1), ('b', 2), ('c', 1)")
    assert answer(engine, "select * from R") == []
    answer(engine, "insert into R values ('a', 1), ('b', 2)")
    with pytest.raises(DataError, match="unique index 'I'"):
        answer(engine, "update R set n = 3")
    assert answer(engine, "select k, n from R") == [{"k": "a", "n": 1}, {"k": "b", "n": 2}]
