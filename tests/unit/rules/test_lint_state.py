"""What `check` says of state: without bound, and never reset."""

from __future__ import annotations

import pytest

from rules.compile import compile_rules
from rules.lint.check import lint
from rules.loader import load_text, unite


def doubts(sql: str, options: str = "{}") -> list[tuple[str, str]]:
    rule = f"{{id: r, sql: {sql!r}, options: {options}, actions: [{{nop: {{}}}}]}}"
    text = f"streams: [{{name: s, datasource: s}}]\nrules: [{rule}]\n"
    compiled = compile_rules(unite([load_text(text, "r.yaml")]))
    assert [item.message for item in compiled.problems if item.is_error] == []
    return [(item.code, item.message) for item in lint(compiled)]


def test_an_aggregate_without_a_window_never_resets() -> None:
    message = "avg() never resets: without a window it counts every event since the rule began"
    assert doubts("SELECT avg(a) AS m FROM s") == [("R208", message)]
    assert doubts("SELECT b, avg(a) AS m FROM s GROUP BY b") == [("R208", message)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT avg(a) AS m FROM s GROUP BY TUMBLINGWINDOW(ss, 10)",
        "SELECT avg(a) AS m FROM s#time(10 sec)",
        "SELECT a FROM s",
        "from v in s within 5 select mean(v.a)",
    ],
)
def test_a_window_resets_it(sql: str) -> None:
    assert doubts(sql) == []


def test_state_without_bound_is_told_with_its_bound_of_last_resort() -> None:
    ((code, message),) = doubts("SELECT a FROM s#keepall")
    assert code == "R207"
    end = "from 10,000,000 events on (maxWindowEvents) each is an error"
    assert message == f"nothing bounds the state: keepall keeps every event; {end}"
    assert [code for code, _ in doubts("SELECT a FROM s GROUP BY STATEWINDOW(a > 1, a < 1)")] == ["R207"]
    assert doubts("SELECT a FROM s#keepall", "{maxWindowEvents: 1000}") == []
