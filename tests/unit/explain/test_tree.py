"""Plans as trees: whole texts, each line of which was checked against the rule it belongs to."""

from __future__ import annotations

import pickle

import pytest

from edge.deploy.reading.wire import dumped
from sql import Catalog, RuleOptions, plan_rule
from sql.algebra.windows.facts import Stage, filled
from sql.catalog.streams import Variable
from sql.explain.tree import explain
from sql.types import Type
from tests.support.streams import catalog_of

STREAMS = """
CREATE STREAM demo (dev STRING, temp FLOAT, ts BIGINT) WITH (DATASOURCE="d");
CREATE STREAM timed (dev STRING, temp FLOAT, ts BIGINT) WITH (DATASOURCE="t", TIMESTAMP="ts");
CREATE STREAM E (k STRING, n BIGINT, price FLOAT) WITH (DATASOURCE="e");
CREATE STREAM values (v FLOAT) WITH (DATASOURCE="v")
"""


def catalog() -> Catalog:
    made = catalog_of(STREAMS)
    made.variables["SIZE"] = Variable("SIZE", Type.INTEGER, 3)
    return made


def tree(query: str, **options: object) -> str:
    return explain(plan_rule(query, catalog(), RuleOptions(**options)))  # type: ignore[arg-type]


def test_a_plan_of_another_process_is_drawn_alike() -> None:
    streams = STREAMS + """; CREATE TABLE limits (k STRING, v BIGINT) WITH (DATASOURCE="l", TYPE="memory")"""
    plan = plan_rule("SELECT E.n, limits.v FROM E INNER JOIN limits ON E.k = limits.k", catalog_of(streams))
    assert "Sample" not in explain(plan), "a stream joined with a table has no window"
    assert explain(pickle.loads(dumped(plan))) == explain(plan)


def facts(query: str, name: str, **options: object) -> list[str]:
    """The lines of one fact."""
    found, inside = [], False
    for line in tree(query, **options).splitlines():
        if not line.startswith(" "):
            inside = line.startswith(f"{name} ")
        if inside:
            found.append(line.removeprefix(name).strip())
    return found


def test_a_rule_with_every_clause() -> None:
    shown = tree(
        "SELECT dev, avg(temp) AS t FROM demo WHERE temp > 20 GROUP BY dev, HOPPINGWINDOW(ss, 10, 5) "
        "FILTER(WHERE temp > 3) HAVING t > 2 ORDER BY t LIMIT 3"
    )
    operators = [
        line.split("·")[0].strip(" │├└─")
        for line in shown.splitlines()
        if "─" in line or line.startswith("limit")
    ]
    assert operators == [
        "limit 3",
        "order by t",
        "select dev, avg(temp) as t",
        "having t > 2",
        "Agg(avg(temp) O(1))",
        "group by dev",
        "where temp > 20",
        "Sample(every 5 s, origin midnight UTC)",
        "Retain(deadline arrival + 10 s)",
        "filter temp > 3",
        "stream demo",
    ]
    assert "reads dev, temp" in shown and "values leave in the order they came" in shown


def test_windows_in_from() -> None:
    assert tree(
        "insert into Out select irstream k, sum(n) from E(n > 0)#length(2)#time(10 sec) group by k "
        "output last every 2 sec"
    ).splitlines()[:8] == [
        "insert into Out                                                           · row by row",
        "└─ Gate(every 2 s)                                                        · output last",
        "   └─ select irstream k, sum(n)                                           "
        "· one row per changed group",
        "      └─ Agg(sum(n) O(1))                                                 · values leave "
        "in the order they came",
        "         └─ group by k",
        "            └─ Intersect(Retain(count 2), Retain(deadline arrival + 10 s))  "
        "· #length(2)#time(10 sec)",
        "               └─ filter n > 0                                            · before the window",
        "                  └─ stream E                                             · reads k, n",
    ]


@pytest.mark.parametrize(
    ("window", "stages"),
    [
        ("#length_batch(5)", ["Retain(generation)", "Gate(count 5)"]),
        ("#time_batch(1 min)", ["Retain(generation)", "Gate(every 1 min, origin first event)"]),
        (
            '#time_batch(1 min, 5000L, "FORCE_UPDATE")',
            ["Retain(generation)", "Gate(every 1 min, origin 5000L, also when empty)"],
        ),
        (
            '#time_batch(SIZE sec, "START_EAGER")',
            ["Retain(generation)", "Gate(every SIZE sec, origin start, also when empty)"],
        ),
        ("#rank(k, 3, price desc)", ["Retain(rank 3 by price desc + replace by k)"]),
        ("#expr(sum(n) < 10)", ["Retain(while sum(n) < 10 of the oldest)"]),
        ("#groupwin(k)#length(5)", ["Key(k, Retain(count 5))"]),
        (
            "#groupwin(k)#length(5)#merge(k)#uni(price)",
            ["Agg(uni(price), posting the changed row)", "Key(k, Retain(count 5))"],
        ),
        ("#length(2)#time(3 sec) retain-union", ["Union(Retain(count 2), Retain(deadline arrival + 3 s))"]),
        ("#time(1 month)", ["Retain(deadline arrival + 1 month)"]),
    ],
)
def test_compositions_have_the_actual_parameters(window: str, stages: list[str]) -> None:
    lines = tree(f"select * from E{window}").splitlines()
    found = [line.split("·")[0].strip(" └─") for line in lines[1 : 1 + len(stages)]]
    assert found == stages


@pytest.mark.parametrize(
    ("query", "stages"),
    [
        (
            "from v in values within 1.5 every 1.0 select v",
            ["Gate(every 1 s, origin creation, net)", "Retain(deadline arrival + 1.5 s)"],
        ),
        (
            "from v in values within 10.0 retain 5 select v",
            ["Intersect(Retain(deadline arrival + 10 s), Retain(count 5))"],
        ),
        (
            "from v in values retain 3 every 2 with unique v select v",
            ["Latest(v)", "Gate(count 2, net)", "Retain(count 3)"],
        ),
        (
            "SELECT count(*) AS n FROM demo GROUP BY SLIDINGWINDOW(ss, 4, 2) OVER(WHEN temp > 3)",
            ["Sample(at each event where temp > 3, 2 s later)", "Retain(deadline arrival + 6 s)"],
        ),
        (
            "SELECT count(*) AS n FROM demo GROUP BY COUNTWINDOW(5, 2)",
            ["Sample(every 2 events, once 5 are there)", "Retain(count 5)"],
        ),
        (
            "SELECT count(*) AS n FROM demo GROUP BY SESSIONWINDOW(mi, 10, 1) OVER(PARTITION BY dev)",
            ["Key(dev, Gate(first of: gap 1 min, maximum 10 min); Sample(at each release))"],
        ),
        (
            "SELECT count(*) AS n FROM demo GROUP BY TUMBLINGWINDOW(ss, 7)",
            ["Sample(at each release)", "Gate(every 7 s, origin epoch)"],
        ),
    ],
)
def test_windows_of_the_other_languages(query: str, stages: list[str]) -> None:
    shown = tree(query)
    at = [shown.index(stage) for stage in stages]
    assert at == sorted(at)


def test_joins_branch() -> None:
    shown = tree("select e.n from E#lastevent as e inner join E#length(2) as f on e.k = f.k")
    assert "Product(inner f on e.k = f.k)" in shown
    assert "   ├─ Retain(count 1)" in shown and "   └─ Retain(count 2)" in shown


def test_a_window_in_group_by_stands_below_the_join() -> None:
    shown = tree(
        "SELECT count(*) AS n FROM demo LEFT JOIN E ON demo.dev = E.k GROUP BY TUMBLINGWINDOW(ss, 10)"
    )
    order = [
        "Product(left E on demo.dev = E.k)",
        "Sample(",
        "Gate(every 10 s",
        "├─ stream demo",
        "└─ stream E",
    ]
    assert [shown.index(part) for part in order] == sorted(shown.index(part) for part in order)


def test_bounds_of_state() -> None:
    assert facts("select k from E#length(5)", "state") == ["at most 5 events"]
    assert facts("select k from E#length_batch(5)", "state") == ["at most 10 events"]
    assert facts("select k, count(*) from E#time(1 min) group by k", "state", max_groups=7) == [
        "at most the events of 1 min",
        "one row of aggregates per k, at most 7 groups",
    ]
    assert facts("SELECT temp FROM demo", "state") == ["none"]


def test_windows_without_bound_are_named() -> None:
    assert facts("select k from E#keepall", "unbounded") == ["keepall keeps every event"]
    assert facts("select k from E#groupwin(k)#length(2)", "unbounded")[0].startswith(
        "groupwin keeps a window for every key"
    )
    assert facts("@Hint('reclaim_group_aged=10') select k from E#groupwin(k)#length(2)", "unbounded") == []
    assert facts("from v in values retain all select sum(v)", "unbounded") == ["retain all keeps every item"]
    assert facts("select k from E#length(5)", "unbounded") == []


def test_clock() -> None:
    assert facts("SELECT temp FROM demo", "clock", zone="Europe/Berlin") == [
        "processing time, zone Europe/Berlin"
    ]
    query = "SELECT count(*) AS n FROM timed GROUP BY TUMBLINGWINDOW(ss, 10)"
    options = {"late_tolerance_ms": 2000, "idle_timeout_ms": 60_000, "max_future_ms": 3_600_000}
    (line,) = facts(query, "clock", **options)
    assert line == (
        "event time from ts, watermark 2 s behind, a silent stream is passed over after 1 min, "
        "refused if more than 1 h ahead, zone UTC"
    )


def test_cost_depends_on_how_values_leave() -> None:
    assert "max(n) O(1) amortised" in tree("select max(n) from E#length(5)")
    assert "max(n) O(√n)" in tree("select max(n) from E#sort(5, price)")


@pytest.mark.parametrize(
    ("query", "cost"),
    [
        (
            "SELECT avg(temp) AS a FROM demo GROUP BY SLIDINGWINDOW(ss, 10)",
            "per event O(1); per sample one row",
        ),
        (
            "SELECT dev, max(temp) AS a FROM demo GROUP BY dev, SLIDINGWINDOW(ss, 10)",
            "per event O(1) amortised; per sample a row for each group",
        ),
        (
            "SELECT temp FROM demo GROUP BY COUNTWINDOW(5, 2)",
            "per event O(1); per sample every row of the window",
        ),
        ("SELECT avg(temp) AS a FROM demo GROUP BY TUMBLINGWINDOW(ss, 10)", "per event O(1)"),
        ("select sum(n) as s from E#groupwin(k)#sort(5, price)", "per event O(log n) + hash of the key"),
    ],
)
def test_cost_is_said_once_for_events_and_for_looks(query: str, cost: str) -> None:
    assert facts(query, "cost") == [cost]


def test_warnings_are_repeated() -> None:
    assert facts("SELECT count(*) AS n FROM demo GROUP BY HOPPINGWINDOW(ss, 5, 10)", "warning")[0].startswith(
        "B701 "
    )


def test_placeholders_take_values_or_stay_letters() -> None:
    assert Stage("Retain", "deadline arrival + {d}").written({"d": "2 s"}) == "Retain(deadline arrival + 2 s)"
    assert filled("{n:2} events of {d:2}", {"n": "4", "d": "1 s"}) == "8 events of 2 x 1 s"
    assert filled("{n:2} events of {d:2}", {}) == "2n events of 2d"
