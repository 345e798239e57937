"""What analytic functions refuse; `tests/scenarios/analytic` has what they give."""

from __future__ import annotations

from tests.unit.sql.kuiper import errors, refusal


def test_whether_null_is_ignored_is_a_boolean_also_where_no_type_is_declared() -> None:
    for call in ("changed_col(a, x)", "had_changed(a, x)"):
        (error,) = errors(
            f"SELECT {call} AS out FROM s", ("s", 1, {"x": 1, "a": 1}), ("s", 2, {"x": 2, "a": True})
        )
        assert "TRUE or FALSE, not bigint 1" in error


def test_what_has_no_meaning_is_refused_with_its_place() -> None:
    assert refusal('SELECT lag(x, "a") AS p FROM s')[:2] == ("B301", '"a"')
    assert refusal("SELECT lag(*) AS p FROM s")[:2] == ("B331", "*")
    assert refusal("SELECT lag(x, -1) AS p FROM s")[:2] == ("B307", "-1")
    assert refusal("SELECT lag(x, abs(0)) AS p FROM s")[:2] == ("B307", "abs(0)")
    assert refusal("SELECT acc_sum(x, x > 1) AS p FROM s")[:2] == ("B310", "acc_sum(x, x > 1)")
    assert refusal("SELECT acc_sum(x, 1, 2 > 1) AS p FROM s")[:2] == ("B301", "1")
    assert refusal("SELECT lag() AS p FROM s")[:2] == ("B310", "lag()")
    assert refusal("SELECT lag(x) OVER (ORDER BY x) AS p FROM s")[0] == "B316"
    assert refusal("SELECT abs(x) OVER (PARTITION BY k) AS p FROM s")[0] == "B316"
