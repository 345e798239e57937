"""Aggregates where statements use them: their own groups and filters, what outlives the
window, events as results."""

from __future__ import annotations

from typing import Any

import pytest

from sql import Catalog, Engine, SqlError, run_script

TYPES = "create schema E(id string, k string, v double, ts long, n int)"
EVENTS: list[dict[str, Any]] = [
    {"id": f"e{i}", "k": "ab"[i % 2], "v": float(i), "n": i, "ts": i * 1000} for i in range(4)
]


def rows(epl: str) -> list[dict[str, Any]]:
    """The insert rows of a statement over four events: e0(a) e1(b) e2(a) e3(b), v = n = 0, 1, 2, 3."""
    engine = Engine(Catalog())
    run_script(engine, TYPES, 0)
    run_script(engine, f"@name('s0') {epl}", 0)
    out = []
    for event in EVENTS:
        for emission in engine.push("E", [event], event["ts"]):
            assert emission.kind == "rows", emission.error
            out += emission.inserted
    return out


def column(epl: str, name: str) -> list[Any]:
    return [row[name] for row in rows(epl)]


def test_an_aggregate_may_have_groups_of_its_own() -> None:
    # length(3): 0 | 0 1 | 0 1 2 | 1 2 3
    found = rows("select k, sum(v) as own, sum(v, group_by:()) as whole from E#length(3) group by k")
    assert [(row["own"], row["whole"]) for row in found] == [(0.0, 0.0), (1.0, 1.0), (2.0, 3.0), (4.0, 6.0)]
    assert column("select id, sum(v, group_by:k) as s from E#length(3)", "s") == [0.0, 1.0, 2.0, 4.0]


def test_an_aggregate_may_have_a_filter_of_its_own() -> None:
    assert column("select sum(v, filter:n > 1) as s from E#length(3)", "s") == [None, None, 2.0, 5.0]


def test_what_has_left_still_counts_for_ever_forms() -> None:
    found = rows(
        "select countever(*) as c, firstever(id) as f, lastever(id) as l, minever(v) as m from E#length(1)"
    )
    assert [tuple(row.values()) for row in found] == [
        (1, "e0", "e0", 0.0),
        (2, "e0", "e1", 0.0),
        (3, "e0", "e2", 0.0),
        (4, "e0", "e3", 0.0),
    ]


def test_distinct_values_count_once() -> None:
    assert column("select count(distinct k) as c from E#length(2)", "c") == [1, 2, 2, 2]


def test_leaving_and_rate_look_at_what_left() -> None:
    assert column("select leaving() as l from E#length(2)", "l") == [False, False, True, True]
    # two events in the window, 2 s between the newest and the last that left
    assert column("select rate(ts) as r from E#length(2)", "r") == [None, None, 1.0, 1.0]


def test_results_may_be_events() -> None:
    assert column("select maxby(v).id as m from E#length(2)", "m") == ["e0", "e1", "e2", "e3"]
    assert column("select sorted(v desc).selectFrom(x => x.id) as s from E#length(2)", "s") == [
        ["e0"],
        ["e1", "e0"],
        ["e2", "e1"],
        ["e3", "e2"],
    ]
    assert column("select window(*) as w from E#length(2)", "w")[1] == EVENTS[:2]


def test_inside_an_aggregate_a_name_means_the_column_not_the_alias_of_an_aggregate() -> None:
    assert rows("select k, avg(v) as v from E#length(2) group by k having avg(v) > 1") == [
        {"k": "a", "v": 2.0},
        {"k": "b", "v": 3.0},
    ]


@pytest.mark.parametrize(
    ("epl", "code", "line_and_column"),
    [
        ("select sum(k) from E", "B301", ":1:12:"),
        ("select sum(sum(v)) from E", "B330", ":1:12:"),
        ("select sum(*) from E", "B331", ":1:8:"),
        ("select id from E where sum(v) > 1", "B330", ":1:24:"),
        ("select nosuch(v) from E", "B204", ":1:8:"),
    ],
)
def test_wrong_uses_are_placed(epl: str, code: str, line_and_column: str) -> None:
    engine = Engine(Catalog())
    run_script(engine, TYPES, 0)
    with pytest.raises(SqlError) as caught:
        run_script(engine, epl, 0)
    assert f"{line_and_column} {code}" in str(caught.value)
