"""The worked example of batched windows, drawn (stream-queries.md section 3).

`within 1.5 every 1.0`, created at 0. An item enters at the first update point at or after its arrival and
leaves at the first one at or after its arrival + 1.5 s: the time it waits counts.

    s       0.0       1.0       2.0       3.0       4.0       5.0       6.0
            |----+----|----+----|----+----|----+----|----+----|----+----|
    10           a    [=========)                                           due at 2.0, an update point: out
    20                     b    [=========)                                 due at 3.0
    30                          [===================)                       in at the point; due at 3.5
    40                                         d    [=========)             due at 5.0

    istream           10        20 30               40
    rstream                     10        20        30        40
    sum               10        50        30        40        0         -
"""

from __future__ import annotations

from typing import Any

import pytest

from sql import Catalog, Engine, RuleOptions, plan_rule
from tests.conformance.catalog import define
from tests.reference import lots

ITEMS = [(500, 10.0), (1500, 20.0), (2000, 30.0), (3500, 40.0)]
END = 7000

QUERY = "from v in values within 1.5 every 1.0 select "


def run(query: str, items: list[tuple[int, float]], end: int = END) -> list[tuple[int, list[Any]]]:
    """The lots of a query over items (instant, value); the reference evaluator agrees."""
    catalog = define(Catalog(), "create schema values(v double)")
    plan = plan_rule(query, catalog, RuleOptions())
    engine = Engine(catalog)
    engine.deploy("query", plan, 0)
    emissions = []
    steps: list[dict[str, Any]] = []
    for at_ms, value in items:
        emissions += [*engine.advance(at_ms), *engine.push("values", [{"v": value}], at_ms)]
        steps += [{"advance": at_ms}, {"send": "values", "event": {"v": value}}]
    emissions += engine.advance(end)
    got = [(out.at_ms, out.inserted) for out in emissions]
    assert got == lots.run(plan, [*steps, {"advance": end}])
    return [(at_ms, [next(iter(row.values())) for row in rows]) for at_ms, rows in got]


def test_items_enter_at_update_points() -> None:
    assert run(QUERY + "v", ITEMS) == [(1000, [10.0]), (2000, [20.0, 30.0]), (4000, [40.0])]


def test_items_leave_at_update_points_by_their_arrival() -> None:
    assert run(QUERY + "rstream v", ITEMS) == [(2000, [10.0]), (3000, [20.0]), (4000, [30.0]), (5000, [40.0])]


def test_an_aggregate_is_evaluated_once_per_lot_and_only_if_the_content_changed() -> None:
    sums = [(1000, [10.0]), (2000, [50.0]), (3000, [30.0]), (4000, [40.0]), (5000, [0])]
    assert run(QUERY + "sum(v)", ITEMS) == sums


def test_an_item_that_would_leave_before_it_enters_never_appears() -> None:
    """A period longer than the window:

    s     0.0                 1.0                 2.0
          |----+----+----+----|----+----+----+----|
    1         a---------)                             in at 1.0, due at 0.7: never
    2               b---------)                       due at 1.0: never
    3                 c-------[===================)   due at 1.1, so out at 2.0
    4                         [===================)   due at 1.5
    """
    items = [(200, 1.0), (500, 2.0), (600, 3.0), (1000, 4.0)]
    assert run("from v in values within 0.5 every 1.0 select v", items) == [(1000, [3.0, 4.0])]
    assert run("from v in values within 0.5 every 1.0 select rstream v", items) == [(2000, [3.0, 4.0])]


@pytest.mark.parametrize(
    ("window", "entering", "leaving"),
    [
        (
            "retain 3 every 2",
            [(2, [1.0, 2.0]), (4, [3.0, 4.0]), (6, [5.0, 6.0])],
            [(4, [1.0]), (6, [2.0, 3.0])],
        ),
        ("retain 2 every 3", [(3, [2.0, 3.0]), (6, [5.0, 6.0])], [(6, [2.0, 3.0])]),
    ],
)
def test_by_count_m_held_items_enter_together(window: str, entering: Any, leaving: Any) -> None:
    items = [(number, float(number)) for number in range(1, 7)]
    assert run(f"from v in values {window} select v", items) == entering
    assert run(f"from v in values {window} select rstream v", items) == leaving


def test_both_the_last_n_of_what_is_younger_than_d() -> None:
    items = [(200, 1.0), (700, 2.0)]
    assert run(QUERY.replace("select", "retain 1 select") + "v", items) == [(1000, [2.0])]
    assert run(QUERY.replace("select", "retain 1 select") + "rstream v", items) == [(3000, [2.0])]
