"""Which rules run on generated code, and why the others run on the operators: no shape loses its loop unnoticed."""

from __future__ import annotations

import pytest

from sql import Catalog, Engine, RuleOptions, plan_rule
from tests.conformance.catalog import define
from tests.property.rules import COMMON_WINDOWS, Rule

AGGREGATES = "count(*) as c, sum(v) as s, min(v) as lo, avg(v) as a"

STATEMENTS = [
    select.format(window)
    for window in COMMON_WINDOWS
    for select in (
        "select * from m{}",
        "select id, v * 2 as w from m(n > 0){} where k = 'a'",
        f"select id, {AGGREGATES} from m{{}} where v is not null having count(*) > 1",
        f"select {AGGREGATES} from m{{}}",
        f"select k, {AGGREGATES} from m(n > 0){{}} group by k having sum(v) > 1",
        f"select id, k, {AGGREGATES} from m{{}} group by k",
    )
]

CHANGES = [
    f"select {selector} {items} from m{window}{rest}"
    for selector in ("irstream", "rstream")
    for window in (
        "#length(3)", "#time(2 sec)", "#ext_timed(ts, 2 sec)", "#unique(k)", "#length_batch(3)", "#time_batch(2 sec)",
        "#ext_timed_batch(ts, 2 sec)",
    )
    for items, rest in (("*", ""), (AGGREGATES, ""), (f"k, {AGGREGATES}", " group by k"))
]  # fmt: skip

STATES = [
    f"select {call} as a from m{window}"
    for window in ("#length(3)", "#time(2 sec)", "#unique(k)")
    for call in (
        "sum(v, filter: n > 0)",
        "stddev(v)",
        "median(v)",
        "count(distinct k)",
        "avg(distinct v)",
        "first(v)",
        "last(v)",
    )
]

LOOKS = [
    select.format(window)
    for window in (
        "TUMBLINGWINDOW(ss, 2)", "HOPPINGWINDOW(ss, 5, 2)", "SESSIONWINDOW(ss, 5, 1)", "COUNTWINDOW(3)",
        "COUNTWINDOW(4, 2)",
    )
    for select in (
        f"SELECT {AGGREGATES}, window_start() AS ws FROM m WHERE v > 1 GROUP BY {{}} FILTER(WHERE n > 0)",
        f"SELECT k, {AGGREGATES} FROM m GROUP BY k, {{}} HAVING count(*) > 1 ORDER BY k LIMIT 2",
        f"SELECT id, {AGGREGATES} FROM m GROUP BY k, n, {{}}",
        "SELECT * FROM m GROUP BY {}",
        "SELECT id, v FROM m WHERE n > 0 GROUP BY {} ORDER BY v",
    )
]  # fmt: skip

COLLECTED = [
    f"SELECT k, collect(v) AS vs, count(*) FILTER(WHERE n > 0) AS c FROM m GROUP BY k, {window}"
    for window in (
        "TUMBLINGWINDOW(ss, 2)",
        "SESSIONWINDOW(ss, 5, 1)",
        "COUNTWINDOW(3)",
        "HOPPINGWINDOW(ss, 5, 2)",
        "COUNTWINDOW(4, 2)",
    )
]

SLIDING = [
    f"SELECT {AGGREGATES}, window_start() AS ws FROM m WHERE v > 1 GROUP BY SLIDINGWINDOW(ss, 2) FILTER(WHERE n > 0)",
    f"SELECT k, {AGGREGATES} FROM m GROUP BY k, SLIDINGWINDOW(ss, 2)",
    f"SELECT {AGGREGATES} FROM m GROUP BY SLIDINGWINDOW(ss, 2) OVER(WHEN n > 1)",
]

SAMPLED = [
    "SELECT median(v) AS m FROM m GROUP BY COUNTWINDOW(4, 2)",
    "SELECT sum(DISTINCT v) AS s FROM m GROUP BY HOPPINGWINDOW(ss, 5, 2)",
    "SELECT max(v) FILTER(WHERE n > 0) AS m FROM m GROUP BY HOPPINGWINDOW(ss, 5, 2)",
    "SELECT count(*) AS c FROM m GROUP BY TUMBLINGWINDOW(ss, 2) OVER(PARTITION BY k)",
    "SELECT count(*) AS c FROM m GROUP BY STATEWINDOW(n > 1, n < 1)",
    "SELECT count(*) AS c FROM m GROUP BY SLIDINGWINDOW(ss, 1, 1)",
    "SELECT id FROM m GROUP BY SLIDINGWINDOW(ss, 1)",
    "SELECT last_value(v, true) AS l, lag(v) AS b FROM m GROUP BY TUMBLINGWINDOW(ss, 2)",
    "SELECT a.id FROM m AS a INNER JOIN m AS b ON a.id = b.id GROUP BY TUMBLINGWINDOW(ss, 2)",
]
"""Rules of windows by key, states, delays, and aggregates that no pane can merge."""

STATELESS = [
    "SELECT * FROM m WHERE v > 1",
    "SELECT id, v - lag(v) OVER (PARTITION BY k) AS d FROM m",
    "select id, v * 2 as w from m(v > 1)",
]

ON_OPERATORS = [
    ("select id from m#ext_timed(current_timestamp(), 1 sec)", "the instant of each event"),
    ("select id from m#length(3) output every 1 sec", "output limit"),
    ("select id, prev(1, id) as p from m#length(3)", "earlier events"),
    ("select id from m#length(3)#time(1 sec)", "chained"),
    ("select id from m#sort(2, v)", "without generated code"),
    ("select stddev(v) as d from m#length_batch(3)", "because of the batch before"),
    ("select id from m#length(3) order by v limit 1", "ORDER BY or LIMIT for single rows"),
    ("select maxever(v) as x from m#length(3)", "keeps what has left"),
    ("select sum(v) as s from m", "without a window"),
    ("select (select count(*) from m#length(2)) as c from m#length(3)", "subquery"),
    ("select a.id from m#length(1) as a, m#length(1) as b", "joins"),
    ("from e in m within 1.5 select e.id", "stream queries"),
]
"""Rules that run on the operators, and a part of the reason."""


def path_of(text: str, *, event_time: bool = False, **options: object) -> tuple[str, str]:
    """The path a rule takes, and the reason."""
    catalog = define(Catalog(), Rule(text, event_time).ddl)
    engine = Engine(catalog)
    engine.deploy("rule", plan_rule(text, catalog, RuleOptions(**options)), 0)  # type: ignore[arg-type]
    return engine.path("rule")


@pytest.mark.parametrize("event_time", [False, True])
@pytest.mark.parametrize("text", [*STATEMENTS, *CHANGES, *STATES, *LOOKS, *COLLECTED, *SLIDING, *SAMPLED, *STATELESS])
def test_generated(text: str, event_time: bool) -> None:
    assert path_of(text, event_time=event_time) == ("fast", "")


@pytest.mark.parametrize(("text", "reason"), ON_OPERATORS)
def test_on_operators(text: str, reason: str) -> None:
    path, why = path_of(text)
    assert path == "engine"
    assert reason in why


def test_empty_windows_are_shown_by_generated_code() -> None:
    text = "SELECT count(*) AS c FROM m GROUP BY TUMBLINGWINDOW(ss, 2)"
    assert path_of(text, emit_empty=True) == ("fast", "")
