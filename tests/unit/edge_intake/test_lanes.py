"""Lanes of topics whose messages must keep their order."""

from __future__ import annotations

from edge.intake.lanes import lanes
from edge.intake.stream_decoder import StreamSpec
from edge.intake.streams import StreamTable

GROUPS = {"a": "g", "b": "g", "c": "h", "d": "h"}


def spec(name: str, topic: str, connection: str = "") -> StreamSpec:
    return StreamSpec(name, topic, connection=connection)


def same(found: dict[str, str]) -> list[set[str]]:
    """The streams that share a lane."""
    return [{name for name in found if found[name] == lane} for lane in dict.fromkeys(found.values())]


def test_each_group_has_its_own() -> None:
    found = lanes([spec("a", "t/a"), spec("b", "t/b"), spec("c", "t/c"), spec("d", "t/d")], GROUPS)
    assert same(found) == [{"a", "b"}, {"c", "d"}]


def test_groups_that_read_one_topic_share_a_lane() -> None:
    everything = [{"a", "b", "c", "d"}]
    assert (
        same(lanes([spec("a", "t/a"), spec("b", "t/b"), spec("c", "t/a"), spec("d", "t/d")], GROUPS))
        == everything
    )
    assert (
        same(lanes([spec("a", "t/a"), spec("b", "t/b"), spec("c", "t/+"), spec("d", "x")], GROUPS))
        == everything
    )
    shared = [spec("a", "t/a"), spec("b", "t/b"), spec("c", "$share/g/t/#"), spec("d", "x")]
    assert same(lanes(shared, GROUPS)) == everything


def test_topics_of_another_broker_are_others() -> None:
    found = lanes(
        [spec("a", "t/a"), spec("b", "t/b"), spec("c", "t/a", "line2"), spec("d", "t/+", "line2")], GROUPS
    )
    assert same(found) == [{"a", "b"}, {"c", "d"}]


def test_the_lane_of_a_topic() -> None:
    table = StreamTable(
        [spec("a", "t/a"), spec("b", "t/b"), spec("c", "t/c"), spec("d", "t/d"), spec("e", "t/e")], GROUPS
    )
    assert table.lane_of("t/a") == table.lane_of("t/b") != table.lane_of("t/c") == table.lane_of("t/d")
    assert table.lane_of("t/e") == "t/e"


def test_topics_of_a_stream_in_event_time_share_a_lane() -> None:
    table = StreamTable([spec("a", "t/+"), spec("b", "u/+")], timed={"a"})
    assert table.lane_of("t/1") == table.lane_of("t/2") != table.lane_of("u/1")
    assert table.lane_of("u/1") != table.lane_of("u/2")
