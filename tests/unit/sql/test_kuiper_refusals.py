"""What can never work in a statement of eKuiper is refused at its place."""

from __future__ import annotations

import pytest

from tests.unit.sql.kuiper import each, refusal


@pytest.mark.parametrize(
    ("expression", "place", "message"),
    [
        ("array_create(1, 2)['k']", "'k'", "the index of an array is a whole number, not string"),
        ("array_create(1)['k':]", "'k'", "a bound of a slice is a whole number, not string"),
        ("upper(a)[0]", "upper(a)", "an index reads an array, not string"),
        ("upper(a)[0:1]", "upper(a)", "a slice is cut out of an array, not string"),
        ("parse_json(a)[0] + object_construct('k', 1)[0]", "0", "the key of an object is text, not bigint"),
    ],
)
def test_an_index_that_can_never_work_is_refused(expression: str, place: str, message: str) -> None:
    code, found, text = refusal(f"SELECT {expression} AS x FROM s")
    assert (code, found, text) == ("B301", place, message)


@pytest.mark.parametrize("limit", ["LIMIT a", "LIMIT 1 + a", "LIMIT 1.5"])
def test_a_limit_is_a_whole_number(limit: str) -> None:
    code, place, message = refusal(f"SELECT a FROM s GROUP BY COUNTWINDOW(2) {limit}")
    assert (code, place, message) == ("B304", limit.removeprefix("LIMIT "), "LIMIT takes a whole number")


def test_a_sign_and_its_equals_may_stand_apart() -> None:
    assert each("SELECT a FROM s WHERE a > = 2 AND a < = 3", *({"a": a} for a in range(5))) == [
        {"a": 2},
        {"a": 3},
    ]
