"""The channel from one rule's results to another's stream, inside the process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

Subscriber = Callable[[str, Sequence[Mapping[str, object]], int], bool]
"""A function of (topic, rows, at_ms) that returns True if it took the rows; after False they are offered
again."""


class MemoryBus:
    """Topics in memory, with MQTT's wildcards for subscribers. Nothing is stored: rows for a topic without
    subscribers are lost. Subscribers are called from sink worker threads and must not block."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscribers: list[tuple[str, Subscriber]] = []

    def subscribe(self, topic_filter: str, subscriber: Subscriber) -> Callable[[], None]:
        """Offer `subscriber` all rows of matching topics; returns the function that ends the subscription."""
        entry = (topic_filter, subscriber)
        with self._lock:
            self._subscribers.append(entry)

        def unsubscribe() -> None:
            with self._lock:
                if entry in self._subscribers:
                    self._subscribers.remove(entry)

        return unsubscribe

    def subscribers(self, topic: str) -> list[Subscriber]:
        """The subscribers of `topic`, in order of subscription."""
        with self._lock:
            entries = list(self._subscribers)
        return [subscriber for topic_filter, subscriber in entries if topic_matches(topic_filter, topic)]


def may_match(topic_filter: str, topic: str) -> bool:
    """True if an MQTT topic filter may match a topic with fields, each of which fills a part of a level.

    >>> may_match("a/+/c", "a/x{{.b}}/c"), may_match("a/b", "a/{{.b}}"), may_match("a/b", "a/{{.b}}/c")
    (True, True, False)
    """
    wanted = topic_filter.split("/")
    levels = topic.split("/")
    filled = [near if "{{" in level else level for level, near in zip(levels, wanted, strict=False)]
    return topic_matches(topic_filter, "/".join([*filled, *levels[len(wanted) :]]))


def topic_matches(topic_filter: str, topic: str) -> bool:
    """True if an MQTT topic filter matches a topic.

    >>> topic_matches("a/+/c", "a/b/c"), topic_matches("a/#", "a"), topic_matches("a/+", "a/b/c")
    (True, True, False)
    """
    wanted, levels = topic_filter.split("/"), topic.split("/")
    if levels[0].startswith("$") and wanted[0] in ("#", "+"):
        return False
    for position, level in enumerate(wanted):
        if level == "#":
            return True
        if position >= len(levels) or level not in ("+", levels[position]):
            return False
    return len(wanted) == len(levels)
