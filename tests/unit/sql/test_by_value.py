"""Windows of statements that show aggregates alone keep what events contribute, not the events."""

from __future__ import annotations

from typing import Any

import pytest

from sql import Engine
from sql.algebra.event import Delta
from sql.algebra.retain.values import net_of_values
from sql.errors import CorruptState
from tests.support.streams import engine_of


def engine(text: str) -> Engine:
    return engine_of("CREATE STREAM m (v FLOAT, note STRING)", text)


def pushed(made: Engine, values: list[Any], now_ms: int = 0) -> list[Any]:
    """The only column of each row that the values cause."""
    emissions = made.push("m", [{"v": value, "note": "n" * 50} for value in values], now_ms)
    return [value for emission in emissions for row in emission.inserted for value in row.values()]


def change(came: Any, went: Any) -> Delta:
    """A delta of values in the place of events."""
    return Delta(came, went)


@pytest.mark.parametrize("window", ["length(3)", "time(1 sec)", "time_accum(1 sec)", "keepall()"])
def test_state_has_values_and_no_events(window: str) -> None:
    made = engine(f"select sum(v) as s from m#{window}")
    pushed(made, [1.5, None, 1e-300])
    state = made.snapshot("r")
    assert state["events"] == []
    assert "nnn" not in str(state)
    assert made.counters("r")["retained"] == 3


def test_other_reads_of_the_event_keep_it() -> None:
    made = engine("select sum(v) as s, last(note) as note from m#length(3)")
    pushed(made, [1.5])
    assert len(made.snapshot("r")["events"]) == 1


def test_events_that_do_not_count_have_their_place() -> None:
    made = engine("select avg(v) as a from m#length(2) where v > 0")
    assert pushed(made, [1.0, -5.0, 4.0, -5.0]) == [1.0, 4.0], (
        "one row where the 1 leaves, none where a -5 does"
    )
    assert pushed(made, [-5.0]) == [None], "the 4 has left"


OLD: dict[str, Any] = {
    "version": 2, "now": 0, "seq": 3, "start": 0, "counts": {"events_in": 3, "rows_out": 2, "errors": 0},
    "budget": [10_000_000, 9_999_997, 0], "analytic": None, "hits": {}, "shared": {}, "into": None,
    "posts": [], "groups": [[{"t": []}, 0, None, [1, {"$": "int", "of": "0x40000000000000000"}, None]]],
    "sources": {"windows": [[2, 3]], "joined": None, "subqueries": None, "patterns": [], "recognized": []},
    "output": {"spreads": None, "limit": None, "waits": False}, "prior": [], "recent": [], "older": [],
    "representatives": [], "reclaim": None, "items": [],
    "events": [[2, 0, {"v": -3.0}, None, []], [3, 0, {"v": 4.0}, None, []]],
    "members": [[3, {"t": []}, {"value": {"$": "int", "of": "0x40000000000000000"}}]],
}  # fmt: skip
"""The state of an older version, which kept events: -3, which WHERE drops, and 4, in units of 2**-64."""


def test_state_of_a_version_that_kept_events_goes_on() -> None:
    made = engine("select avg(v) as a from m#length(2) where v > 0")
    made.restore("r", OLD | {"fingerprint": made.snapshot("r")["fingerprint"]})
    assert pushed(made, [8.0, 10.0]) == [6.0, 9.0]


def test_events_behind_a_gate_that_were_not_evaluated_yet_are_refused() -> None:
    made = engine("from e in m within 10.0 every 1.0 select mean(e.v)")
    gate = [[2, 3], {"inserted": [3], "removed": [], "point": 0, "origin": 0}]
    old = OLD | {
        "fingerprint": made.snapshot("r")["fingerprint"],
        "sources": OLD["sources"] | {"windows": [gate]},
    }
    with pytest.raises(CorruptState, match="had not evaluated"):
        made.restore("r", old)


def test_values_that_come_and_go_in_one_lot_are_not_in_its_change() -> None:
    # `retain 1 every 2` holds 7 and takes 1, 2, 3, 4: it shows 2 in the place of 7, then 4 in the place of 2.
    assert net_of_values([change([2], [7]), change([4], [2])], 1) == change([4], [7])


def test_a_value_is_computed_as_its_event_comes_unless_it_may_change_until_then() -> None:
    made = engine("from e in m within 10.0 every 1.0 select mean(e.v)")
    emissions = made.push("m", [{"v": "warm"}], 500)
    assert [(emission.kind, emission.at_ms) for emission in emissions] == [("error", 500)]
