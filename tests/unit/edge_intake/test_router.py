"""The router against paho's own matcher, and what brokers refuse."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paho.mqtt.client import topic_matches_sub

from edge.intake.router import (
    BadTopicFilter,
    TopicRouter,
    check_filter,
    covers,
    cross,
    router_of,
    to_subscribe,
)

words = st.sampled_from(["a", "b", "", "$SYS", "long name"])
topics = st.lists(words, min_size=1, max_size=5).map("/".join).filter(bool)


@st.composite
def filters(draw: st.DrawFn) -> str:
    levels = draw(st.lists(st.one_of(words, st.just("+")), max_size=4))
    if draw(st.booleans()) or not any(levels):
        levels.append("#")
    return "/".join(levels)


@given(st.lists(filters(), max_size=6), st.lists(topics, min_size=1, max_size=6))
def test_matches_as_a_broker_does(names: list[str], seen: list[str]) -> None:
    router = TopicRouter(cache_topics_max=2)
    for number, name in enumerate(names):
        router.add(name, f"stream{number}")
    for topic in [*seen, *seen]:  # the second time from the cache
        expected = tuple(
            sorted(f"stream{n}" for n, name in enumerate(names) if topic_matches_sub(name, topic))
        )
        assert router.match(topic) == expected


def test_a_stream_with_overlapping_filters_gets_a_message_once() -> None:
    router = TopicRouter()
    for name in ("plant/#", "plant/+/temp", "+/7/+", "#"):
        router.add(name, "all")
    assert router.match("plant/7/temp") == ("all",)


def test_system_topics_are_hidden_from_leading_wildcards() -> None:
    router = TopicRouter()
    for name, stream in (("#", "all"), ("+/broker/load", "plus"), ("$SYS/#", "system")):
        router.add(name, stream)
    assert router.match("$SYS/broker/load") == ("system",)
    assert router.match("x/broker/load") == ("all", "plus")


def test_a_shared_subscription_matches_what_its_filter_matches() -> None:
    router = TopicRouter()
    router.add("$share/gateways/plant/+", "shared")
    assert router.match("plant/7") == ("shared",)
    assert router.match("$share/gateways/plant/7") == ()


def test_a_filter_added_later_is_seen_for_topics_in_the_cache() -> None:
    router = TopicRouter()
    router.add("a", "one")
    assert router.match("a") == ("one",)
    router.add("#", "two")
    assert router.match("a") == ("one", "two")


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("", "empty"),
        ("a/#/b", "the last one"),
        ("a#", "a whole level"),
        ("a/b+", "a whole level"),
        ("a\0b", "NUL"),
        ("a" * 65_536, "65536 bytes"),
        ("\ud800", "Unicode"),
        ("$share/group", "$share/GROUP/FILTER"),
        ("$share//a", "$share/GROUP/FILTER"),
        ("$share/g+/a", "$share/GROUP/FILTER"),
        ("$share/g/a#", "a whole level"),
    ],
)
def test_filters_that_no_broker_accepts(name: str, part: str) -> None:
    with pytest.raises(BadTopicFilter, match=part.replace("$", r"\$")):
        check_filter(name)


@pytest.mark.parametrize(
    "name", ["#", "+", "/", "a//b", "+/+/#", "$SYS/#", "$share/g/#", "a" * 65_535, "größe/°C"]
)
def test_filters_that_brokers_accept(name: str) -> None:
    check_filter(name)


@pytest.mark.parametrize(
    ("wide", "narrow", "expected"),
    [
        ("#", "plant/a", True),
        ("plant/#", "plant", True),
        ("plant/#", "plant/#", True),
        ("plant/#", "plan/a", False),
        ("plant/+", "plant/a", True),
        ("plant/+", "plant/+", True),
        ("plant/a", "plant/+", False),
        ("plant/+", "plant/a/b", False),
        ("plant/+", "plant", False),
        ("plant/+/#", "plant/#", False),  # "plant" itself
        ("+/#", "$SYS/#", False),
        ("$SYS/#", "$SYS/load", True),
        ("plant/#", "$share/g/plant/a", False),
        ("$share/g/plant/#", "plant/a", False),
    ],
)
def test_what_a_subscription_covers(wide: str, narrow: str, expected: bool) -> None:
    assert covers(wide, narrow) is expected


@given(
    st.lists(st.sampled_from(["a", "b", "+"]), min_size=1, max_size=3).map("/".join),
    st.booleans(),
    st.lists(st.sampled_from(["a", "b", "+"]), min_size=1, max_size=3).map("/".join),
    st.booleans(),
)
def test_covering_and_crossing_agree_with_matching(
    one: str, one_open: bool, other: str, other_open: bool
) -> None:
    """Against every topic of up to five levels of the words a, b and c; c stands for any other word."""
    wide, narrow = (one + "/#" * one_open), (other + "/#" * other_open)
    router = TopicRouter()
    router.add(wide, "wide")
    router.add(narrow, "narrow")
    matches = [
        router.match("/".join(words)) for depth in range(1, 6) for words in product("abc", repeat=depth)
    ]
    assert covers(wide, narrow) is all("wide" in found for found in matches if "narrow" in found)
    assert cross(wide, narrow) is any(len(found) == 2 for found in matches)


@given(
    st.lists(
        st.lists(st.sampled_from(["a", "b", "+", "$SYS"]), min_size=1, max_size=3).map("/".join),
        min_size=1,
        max_size=6,
    ),
    st.data(),
)
def test_what_crosses_or_covers_is_found_among_many(names: list[str], data: st.DataObject) -> None:
    """The answers about each pair of filters, one by one."""
    filters = sorted({name + data.draw(st.sampled_from(["", "/#"])) for name in names} | {"$share/g/a/#"})
    router = router_of(filters)
    for one in filters:
        found = {other for other in router.crossing(one) if cross(one, other)}
        assert found == {other for other in filters if cross(one, other)}
    covered = {one for one in filters for other in filters if other != one and covers(other, one)}
    assert to_subscribe(filters) == [name for name in filters if name not in covered]


def test_a_filter_of_many_levels_crosses_one_that_ends_open() -> None:
    deep = "/".join("a" * 10_000)
    assert router_of([deep, "b"]).crossing("a/#") == {deep}


def test_filters_of_many_wildcards_are_compared_level_by_level() -> None:
    """Each level is visited once: twice would be 2^40 visits of the last."""
    narrow = "/".join("+" * 40)
    assert to_subscribe([f"{narrow}/#", narrow]) == [f"{narrow}/#"]
