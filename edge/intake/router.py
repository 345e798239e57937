"""From topic to streams: the MQTT topic filters of all streams in one trie.

A topic is walked once, level by level; the answer is remembered per topic, so a topic seen before costs one
dictionary look-up. A stream gets a message once, however many of its filters match. What brokers do is done
here alike:

    plant/+/temp    one level in place of +
    plant/#         plant and everything below it
    $share/g/f      a shared subscription: the broker deals out messages that match f
    $SYS/…          topics that begin with $ are not matched by a filter that begins with + or #
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import zip_longest

from sinks.dynamic import TOPIC_BYTES_MAX
from sinks.memory_bus import topic_matches

CACHE_TOPICS_MAX = 10_000
"""The number of topics in the cache; one more and the cache is emptied, which costs one walk per topic."""


class BadTopicFilter(ValueError):
    """A topic filter that no broker would accept, with the fault and the remedy."""


@dataclass(slots=True)
class _Level:
    """One node: the next levels, streams whose filter ends here, and those whose filter goes on with `#`."""

    children: dict[str, _Level] = field(default_factory=dict)
    ends: set[str] = field(default_factory=set)
    below: set[str] = field(default_factory=set)

    def next(self, name: str) -> Iterable[_Level]:
        """The levels whose topics a level of a filter may match."""
        if name == "+":
            return self.children.values()
        return [self.children[word] for word in (name, "+") if word in self.children]

    def all(self) -> set[str]:
        """The streams here and on all further levels."""
        found, waiting = set[str](), [self]
        while waiting:
            level = waiting.pop()
            found |= level.ends | level.below
            waiting += level.children.values()
        return found


def shared_filter(topic_filter: str) -> tuple[str | None, str]:
    """The group and the filter proper of a shared subscription; the group is None for an ordinary filter.

    >>> shared_filter("$share/gateways/plant/#"), shared_filter("plant/#")
    (('gateways', 'plant/#'), (None, 'plant/#'))
    """
    if not topic_filter.startswith("$share/"):
        return None, topic_filter
    group, slash, rest = topic_filter.removeprefix("$share/").partition("/")
    if not group or not slash or not rest or "+" in group or "#" in group:
        raise BadTopicFilter(f"shared subscription '{topic_filter}' must read $share/GROUP/FILTER")
    return group, rest


def check_filter(topic_filter: str) -> None:
    """Raise `BadTopicFilter` unless a broker would accept the filter.

    >>> check_filter("plant/a#")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    edge.intake.router.BadTopicFilter: '#' in topic filter 'plant/a#' must be a whole level, and ...
    """
    _, plain = shared_filter(topic_filter)
    if not plain:
        raise BadTopicFilter("topic filter is empty; '#' matches every topic")
    try:
        size = len(topic_filter.encode())
    except UnicodeEncodeError:
        raise BadTopicFilter(f"topic filter {topic_filter!a} is not valid Unicode text") from None
    if size > TOPIC_BYTES_MAX:
        raise BadTopicFilter(f"topic filter has {size} bytes; MQTT allows {TOPIC_BYTES_MAX}")
    if "\0" in plain:
        raise BadTopicFilter(f"topic filter {topic_filter!r} contains a NUL character, which MQTT forbids")
    levels = plain.split("/")
    for number, level in enumerate(levels):
        if "#" in level and (level != "#" or number != len(levels) - 1):
            raise BadTopicFilter(
                f"'#' in topic filter '{topic_filter}' must be a whole level, and the last one, "
                "as in 'plant/#'"
            )
        if "+" in level and level != "+":
            raise BadTopicFilter(
                f"'+' in topic filter '{topic_filter}' must be a whole level, as in 'plant/+/temp'"
            )


def covers(wide: str, narrow: str) -> bool:
    """True if a subscription to `wide` brings everything that `narrow` matches.

    >>> covers("plant/#", "plant/+/temp"), covers("plant/+", "plant/#"), covers("#", "$SYS/load")
    (True, False, False)
    """
    if wide.startswith("$share/") or narrow.startswith("$share/"):
        return wide == narrow  # a group's broker deals out messages, so it brings some of them only
    # As for topics, but where `narrow` leaves all further levels open `wide` has to do so,
    # there or before.
    is_open_enough = not narrow.endswith("#") or (wide.endswith("#") and wide.count("/") <= narrow.count("/"))
    return is_open_enough and topic_matches(wide, narrow)


def cross(one: str, other: str) -> bool:
    """True if some topic matches both filters.

    >>> cross("plant/+/temp", "+/7/#"), cross("plant/+", "plant/a/b")
    (True, False)
    """
    if one.startswith("$share/") or other.startswith("$share/"):
        return False
    for ours, theirs in zip_longest(one.split("/"), other.split("/")):
        if "#" in (ours, theirs):
            return True
        if ours != theirs and ("+" not in (ours, theirs) or None in (ours, theirs)):
            return False
    return True


def to_subscribe(filters: Iterable[str]) -> list[str]:
    """The filters without those that another one covers: in MQTT 5 brokers send a copy for each that matches.

    >>> to_subscribe(["plant/+/temp", "plant/#", "office", "plant/#"])
    ['office', 'plant/#']
    """
    every = sorted(set(filters))
    wild = router_of(wildcards(every))
    return [
        name for name in every if not any(other != name and covers(other, name) for other in wild.match(name))
    ]


def wildcards(filters: Iterable[str]) -> list[str]:
    """The filters that may match more than one topic."""
    return [name for name in filters if "+" in name or "#" in name]


def router_of(filters: Iterable[str]) -> TopicRouter:
    """The router of filters that stand for themselves."""
    router = TopicRouter()
    for name in filters:
        router.add(name, name)
    return router


class TopicRouter:
    """The streams that read a topic. Not thread-safe: built and used by one thread,
    replaced as a whole on reload.

    >>> router = TopicRouter()
    >>> router.add("plant/+/temp", "temps")
    >>> router.add("plant/#", "everything")
    >>> router.match("plant/7/temp"), router.match("plant"), router.match("office")
    (('everything', 'temps'), ('everything',), ())
    """

    def __init__(self, cache_topics_max: int = CACHE_TOPICS_MAX) -> None:
        self._root = _Level()
        self._cache: dict[str, tuple[str, ...]] = {}
        self._cache_topics_max = cache_topics_max

    def add(self, topic_filter: str, stream: str) -> None:
        """Let `stream` read the topics that `topic_filter` matches. Raises `BadTopicFilter`."""
        check_filter(topic_filter)
        level = self._root
        names = shared_filter(topic_filter)[1].split("/")
        for name in names[:-1] if names[-1] == "#" else names:
            level = level.children.setdefault(name, _Level())
        (level.below if names[-1] == "#" else level.ends).add(stream)
        self._cache.clear()

    def match(self, topic: str) -> tuple[str, ...]:
        """The streams that read `topic`, each once, by name; empty if there is none."""
        known = self._cache.get(topic)
        if known is not None:
            return known
        if len(self._cache) >= self._cache_topics_max:
            self._cache.clear()
        found = self._cache[topic] = tuple(sorted(self._walk(topic.split("/"))))
        return found

    def crossing(self, topic_filter: str) -> set[str]:
        """The streams that read some topic that a filter matches."""
        here, found = [self._root], set(self._root.below)
        for name in shared_filter(topic_filter)[1].split("/"):
            if name == "#":
                return found.union(*(level.all() for level in here))
            here = [child for level in here for child in level.next(name)]
            found = found.union(*(level.below for level in here))
        return found.union(*(level.ends for level in here))

    def _walk(self, names: list[str]) -> set[str]:
        """Follow every path of the trie that fits, all of them one level at a time."""
        hidden = names[0].startswith("$")
        found = set() if hidden else set(self._root.below)
        here = [self._root]
        for depth, name in enumerate(names):
            # A set: a name of a filter may be "+" itself.
            wanted = {name} if hidden and depth == 0 else {name, "+"}
            here = [level.children[word] for level in here for word in wanted if word in level.children]
            for level in here:
                found |= level.below
        return found.union(*(level.ends for level in here))
