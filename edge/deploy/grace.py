"""Rules that no file has any more: they go on for a while, in case their file comes back."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

from edge.delivery.outbox import Outbox

log = logging.getLogger("penstock.rules")


class Grace:
    """The rules about to be removed; their results are held back. Used by the gateway loop only.

    leaving  when each of them is removed
    left     the file of each, by name, and its text when it had the rule
    """

    def __init__(self, outbox: Outbox, grace_ms: int) -> None:
        self.leaving: dict[str, int] = {}
        self.left: dict[str, tuple[str, str]] = {}
        self.grace_ms = grace_ms
        self._outbox = outbox

    def begin(self, rule_id: str, name: str, text: str, now_ms: int) -> None:
        """The rule's file, of this name and text, is gone."""
        if rule_id not in self.leaving:
            self.leaving[rule_id] = now_ms + self.grace_ms
            self.left[rule_id] = (name, text)
            self._outbox.hold(rule_id)
            log.info("rule.leaving", extra={"rule": rule_id, "grace_ms": self.grace_ms})

    def over(self, now_ms: int) -> list[str]:
        """The rules whose time is over."""
        return [rule_id for rule_id, until_ms in self.leaving.items() if until_ms <= now_ms]

    def end(self, rule_id: str) -> bool:
        """Take the rule off those about to be removed; False if it is not one of them."""
        if self.leaving.pop(rule_id, None) is None:
            return False
        del self.left[rule_id]
        return True

    def come_back(self, rule_id: str) -> None:
        """A file has the rule again: its results are handed over."""
        if self.end(rule_id):
            self._outbox.release(rule_id)
            log.info("rule.came_back", extra={"rule": rule_id})

    def restore(
        self, leaving: Mapping[str, int], left: Mapping[str, tuple[str, str]], running: Collection[str]
    ) -> None:
        """These rules were about to be removed when a snapshot was taken."""
        self.leaving = {rule_id: until_ms for rule_id, until_ms in leaving.items() if rule_id in running}
        self.left = {rule_id: (left[rule_id][0], left[rule_id][1]) for rule_id in self.leaving}
        for rule_id in self.leaving:
            self._outbox.hold(rule_id)
