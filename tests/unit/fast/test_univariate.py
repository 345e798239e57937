"""The columns of `uni`, folded into the loop of a statement,
equal the exact statistic over the window's values."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from sql import plan_rule
from tests.support.search import examples
from tests.support.streams import catalog_of
from tests.unit.aggregates.support import same
from tests.unit.fast.support import PROCESSING_TIME, Run, compare

COLUMNS = ("datapoints", "total", "average", "variance", "stddev", "stddevpa")
FOLDED = f"select {', '.join(COLUMNS)} from m#length(3)#uni(v)"
LENGTH = 3

numbers = st.one_of(
    st.integers(-5, 5),
    st.floats(-100, 100),
    st.none(),
    st.sampled_from([71.53, 1e16, 1e308, -1e308, 5e-324, float("nan"), float("inf"), 2**53 + 1, 10**400]),
)


def kept_window(plan: str) -> bool:
    catalog = catalog_of(PROCESSING_TIME)
    return any(window.name == "uni" for window in plan_rule(plan, catalog).sources[0].windows)


@given(st.lists(numbers, min_size=1, max_size=12))
@example([1.0, 2.0, 1e-300, 4.0, 5.0, 6.0])
@example([10**400, 1.0])
@examples(60)
def test_the_columns_equal_those_of_the_window(values: list[Any]) -> None:
    steps = [
        (number * 1000, [{"dev": "a", "v": value, "n": 0, "ts": 0}]) for number, value in enumerate(values)
    ]
    folded, posted = (
        Run(FOLDED, event_time=False, singly=True),
        Run(f"select * {FOLDED[FOLDED.index('from') :]}", event_time=False),
    )
    for step in steps:
        (mine,), (theirs,) = folded.step(step), posted.step(step)
        assert same(
            [mine.inserted[0][name] for name in COLUMNS], [theirs.inserted[0][name] for name in COLUMNS]
        )


def test_by_hand() -> None:
    values = [1, 2.0, 4, 7]
    steps = [(0, [{"dev": "a", "v": value, "n": 0, "ts": 0} for value in values])]
    rows = [
        emission.inserted[0]
        for emission in compare("select average, variance from m#length(3)#uni(v)", steps)
    ]
    # Of 1, 2 the mean is 3/2 and the squared deviations sum to 1/2; of 1, 2, 4 to 14/3; of 2, 4, 7 to 38/3.
    assert [row["average"] for row in rows[1:]] == [1.5, float(Fraction(7, 3)), float(Fraction(13, 3))]
    assert [row["variance"] for row in rows[1:]] == [0.5, float(Fraction(7, 3)), float(Fraction(19, 3))]


def test_where_decides_about_the_row_that_the_window_would_post() -> None:
    steps = [(0, [{"dev": "a", "v": value, "n": 0, "ts": 0} for value in (1, 3, "text", 5, 2)])]
    found = compare("select average from m#length(2)#uni(v) where average > 2", steps)
    assert [row["average"] for item in found if item.kind == "rows" for row in item.inserted] == [
        3.0,
        5.0,
        3.5,
    ]


def test_statements_that_need_the_rows_keep_the_window() -> None:
    assert not kept_window("select average from m#length(3)#uni(v)")
    assert not kept_window("select average * 2 as x from m#time(10 sec)#unique(dev)#uni(v) where stddev > 1")
    for query in (
        "select * from m#length(3)#uni(v)",
        "select average, dev from m#length(3)#uni(v, dev)",
        "select irstream average from m#length(3)#uni(v)",
        "select max(average) as a from m#length(3)#uni(v)",
        "select prior(1, average) as a from m#length(3)#uni(v)",
        "select average from m#length(3)#uni(v) output last every 10 sec",
        "select average from m#length_batch(3)#uni(v)",
        "select average from m#groupwin(dev)#length(3)#uni(v)",
    ):
        assert kept_window(query), query
