"""Batch windows: the traces of epl.md 2.2 and 2.3, written down by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.fast.support import Run

Post = tuple[int, list[Any]]


def posts(sql: str, steps: list[tuple[int, list[Any]]], **options: Any) -> list[Post]:
    """What comes of events `(dev, v)` at instants: the values of the rows, by instant;
    errors as their text."""
    run = Run(sql, event_time=False, **options)
    emissions = [
        found for at, events in steps for found in run.step((at, [{"dev": dev, "v": v} for dev, v in events]))
    ]
    return [
        (
            found.at_ms,
            [list(row.values()) for row in found.inserted] if found.error is None else [_reason(found.error)],
        )
        for found in emissions
    ]


def _reason(error: str) -> str:
    """The message without its place."""
    return error.rpartition(": ")[2]


def test_a_batch_of_so_many_is_posted_with_its_last() -> None:
    steps = [(0, [("a", 1), ("b", 2)]), (5, [("a", 3), ("c", 4)]), (9, [("d", 5), ("e", 6)])]
    assert posts("select dev, v from m#length_batch(3)", steps) == [
        (5, [["a", 1], ["b", 2], ["a", 3]]),
        (9, [["c", 4], ["d", 5], ["e", 6]]),
    ]


def test_an_emptied_window_posts_once_then_rests() -> None:
    steps = [(1500, [("E1", 1)]), (1700, [("E2", 2)]), (2500, [("E3", 3)]), (5900, [("E6", 6)]), (9000, [])]
    assert posts("select sum(v) from m#time_batch(1 sec)", steps) == [
        (2500, [[3]]),
        (3500, [[3]]),
        (4500, [[None]]),
        (6500, [[6]]),
        (7500, [[None]]),
    ]


def test_forced_updates_begin_with_the_first_event() -> None:
    sql = 'select dev from m#time_batch(1 sec, "FORCE_UPDATE")'
    assert posts(sql, [(5300, [("a", 1)]), (9300, [])]) == [
        (6300, [["a"]]),
        (7300, []),
        (8300, []),
        (9300, []),
    ]


def test_an_eager_window_counts_from_its_start() -> None:
    sql = 'select dev from m#time_batch(1 sec, "START_EAGER")'
    assert posts(sql, [(2300, [("a", 1)]), (5000, [])]) == [
        (1000, []),
        (2000, []),
        (3000, [["a"]]),
        (4000, []),
        (5000, []),
    ]
    sql = 'select dev from m#time_batch(10 sec, 5000L, "START_EAGER")'
    assert posts(sql, [(15000, [])]) == [(5000, []), (15000, [])]


def test_so_many_or_so_long_since_the_last_post() -> None:
    steps = [
        (1000, [("a", 1)]),
        (2000, [("b", 1), ("c", 1)]),
        (5000, [("d", 1)]),
        (32000, [("e", 1)]),
        (50000, []),
    ]
    assert posts("select dev from m#time_length_batch(10 sec, 3)", steps) == [
        (2000, [["a"], ["b"], ["c"]]),
        (12000, [["d"]]),
        (42000, [["e"]]),
    ]


def test_months_are_counted_from_the_reference() -> None:
    day = 86_400_000
    # From 31 January 1970: 28 February is day 58, 31 March day 89.
    sql = "select count(*) from m#time_batch(1 month)"
    assert posts(sql, [(30 * day, [("a", 1)]), (58 * day, [("b", 1)]), (90 * day, [])]) == [
        (58 * day, [[1]]),
        (89 * day, [[1]]),
    ]


def test_groups_that_leave_show_once_that_they_are_empty() -> None:
    steps = [(0, [("a", 1), ("b", 2)]), (1, [("b", 3), ("c", 4)])]
    assert posts("select dev, sum(v), count(*) from m#length_batch(2) group by dev", steps) == [
        (0, [["a", 1, 1], ["b", 2, 1]]),
        (1, [["b", 3, 1], ["c", 4, 1], ["a", None, 0]]),
    ]


def test_rows_of_events_carry_the_values_of_their_batch() -> None:
    steps = [(0, [("a", 1), ("b", 2), ("a", 4)])]
    assert posts("select v, sum(v) from m#length_batch(3)", steps) == [(0, [[1, 7], [2, 7], [4, 7]])]
    assert posts("select v, sum(v) from m#length_batch(3) group by dev", steps) == [
        (0, [[1, 5], [2, 2], [4, 5]])
    ]


def test_what_where_drops_fills_the_batch_all_the_same() -> None:
    steps = [(0, [("a", 0), ("b", 0)]), (1, [("c", 0), ("d", 5)])]
    assert posts("select dev from m#length_batch(2) where v > 0", steps) == [(1, [["d"]])]


def both(sql: str, steps: list[tuple[int, list[Any]]]) -> list[tuple[int, list[Any], list[Any]]]:
    """The new and the old rows of each post, by instant."""
    run = Run(sql, event_time=False)
    emissions = [
        found for at, events in steps for found in run.step((at, [{"dev": dev, "v": v} for dev, v in events]))
    ]
    return [
        (
            found.at_ms,
            [list(row.values()) for row in found.inserted],
            [list(row.values()) for row in found.removed],
        )
        for found in emissions
    ]


def test_a_batch_leaves_as_the_next_comes() -> None:
    steps = [(0, [("a", 1), ("b", 2)]), (1, [("b", 3), ("c", 4)])]
    assert both("select irstream dev, v, istream() from m#length_batch(2)", steps) == [
        (0, [["a", 1, True], ["b", 2, True]], []),
        (1, [["b", 3, True], ["c", 4, True]], [["a", 1, False], ["b", 2, False]]),
    ]
    assert both("select rstream dev from m#length_batch(2)", steps) == [(1, [["a"], ["b"]], [])]
    # Rows of events that leave carry the values there are now.
    assert both("select irstream v, sum(v) from m#length_batch(2)", steps) == [
        (0, [[1, 3], [2, 3]], []),
        (1, [[3, 7], [4, 7]], [[1, 7], [2, 7]]),
    ]
    assert both("select irstream v, sum(v) from m#length_batch(2) group by dev", steps)[1] == (
        1,
        [[3, 3], [4, 4]],
        [[1, None], [2, 3]],
    )


def test_old_rows_of_groups_are_those_before_the_change() -> None:
    steps = [(0, [("a", 1), ("b", 2)]), (1, [("b", 3), ("c", 4)])]
    assert both("select irstream sum(v) from m#length_batch(2)", steps) == [
        (0, [[3]], [[None]]),
        (1, [[7]], [[3]]),
    ]
    assert both("select irstream dev, sum(v) from m#length_batch(2) group by dev", steps) == [
        (0, [["a", 1], ["b", 2]], [["a", None], ["b", None]]),
        (1, [["b", 3], ["c", 4], ["a", None]], [["b", 2], ["c", None], ["a", 1]]),
    ]


def test_forced_updates_tell_that_nothing_has_left() -> None:
    # The first release has only inserts, of which rstream says nothing; the second empties the window.
    sql = 'select rstream dev from m#time_batch(1 sec, "FORCE_UPDATE")'
    assert both(sql, [(5300, [("a", 1)]), (9300, [])]) == [
        (7300, [["a"]], []),
        (8300, [], []),
        (9300, [], []),
    ]


def test_the_events_own_time_releases_and_a_gap_makes_one_post() -> None:
    stamps = [("a", 1000), ("b", 5000), ("c", 11000), ("d", 45000), ("e", 50000), ("f", 51000)]
    steps = [(at, [event]) for at, event in enumerate(stamps)]
    assert both("select irstream dev from m#ext_timed_batch(v, 10 sec)", steps) == [
        (2, [["a"], ["b"]], []),
        (3, [["c"]], [["a"], ["b"]]),
        (5, [["d"], ["e"]], [["c"]]),
    ]
    # With a reference the boundaries are 3 s, 13 s, 23 s …; one that comes late, or has no
    # stamp, joins the batch.
    late: list[Any] = [("a", 12000), ("b", 0), ("c", None), ("d", 12999.5), ("e", 13000)]
    assert both("select dev, count(*) from m#ext_timed_batch(v, 10 sec, 3000L)", [(7, late)]) == [
        (7, [["a", 4], ["b", 4], ["c", 4], ["d", 4]], []),
    ]


@pytest.mark.parametrize("odd", ["x", True])
def test_an_event_that_cannot_be_summed_is_an_error_when_it_is_released(odd: Any) -> None:
    steps = [(0, [("a", odd)]), (7, [("b", 2)]), (8, [("c", 3), ("d", 4)])]
    found = posts("select sum(v) from m#length_batch(2)", steps)
    assert [(at, rows) for at, rows in found if rows[0].__class__ is list] == [(7, [[2]]), (8, [[7]])]
    assert [at for at, rows in found if rows[0].__class__ is str] == [7]


def test_the_bounds_are_those_of_the_operators() -> None:
    # Two events of the last batch and two of this one; the fifth is refused.
    steps = [(0, [("a", 1), ("b", 2)]), (1, [("c", 3), ("d", 4)])]
    found = posts("select dev from m#time_batch(1 min)", steps, max_window_events=3)
    assert found == [(1, ["the rule retains 3 events; raise maxWindowEvents or shorten its window"])]
    # What leaves counts until what enters is there: a, b and c are three.
    found = posts("select dev, sum(v) from m#length_batch(2) group by dev", steps, max_groups=3)
    assert found == [
        (0, [["a", 1], ["b", 2]]),
        (1, [["c", 3], ["a", None], ["b", None]]),
        (1, ["more than 3 groups; raise maxGroups (maxKeys of the stream) or group coarser"]),
    ]
