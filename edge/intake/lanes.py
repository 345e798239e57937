"""Lanes for topics whose messages must keep their order:
one for each group of streams that depend on each other.

A message of a topic that streams of two groups read stands in one place, so those groups share a lane.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Protocol

from edge.intake.router import router_of, shared_filter, wildcards
from sql.engine.interplay import groups as joined


class TopicFeed(Protocol):
    """A stream, with the filter of the topics that it reads on a connection."""

    @property
    def name(self) -> str: ...
    @property
    def topic(self) -> str: ...
    @property
    def connection(self) -> str: ...


def lanes(feeds: Iterable[TopicFeed], groups: Mapping[str, str]) -> dict[str, str]:
    """By stream, the lane of its topics; `groups`: the group of each stream that has one."""
    members: dict[tuple[str, str], list[str]] = {}
    for feed in feeds:
        if feed.name in groups:
            plain = shared_filter(feed.topic)[1]
            members.setdefault((feed.connection, plain), []).append(groups[feed.name])
    meetings = [(found[0], other) for found in members.values() for other in found[1:]]
    filters: dict[str, list[str]] = defaultdict(list)
    for connection, plain in members:
        filters[connection].append(plain)
    for connection, plains in filters.items():
        router = router_of(plains)
        for wide in wildcards(plains):
            first = members[connection, wide][0]
            meetings += [(first, members[connection, narrow][0]) for narrow in router.crossing(wide)]
    leaders = joined([], meetings)
    # No topic has this name: '+' is a wildcard.
    return {name: f"+{leaders.get(group, group)}" for name, group in groups.items()}
