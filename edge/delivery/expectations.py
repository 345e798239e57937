"""The counts of rows that break a check of their rule (`expect:`). Nothing is withheld here: rows go to all
actions, and what the fleet does with them is in `docs/cloud.md`."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rules.expect.expectation import Expect, broken
from sql import Emission

log = logging.getLogger("penstock.expect")


@dataclass(slots=True)
class _Watched:
    """The checks of a rule; by position, how many rows broke each, and when the last one did."""

    checks: Sequence[Expect]
    since_ms: int
    counts: dict[int, int] = field(default_factory=dict)
    last_ms: dict[int, int] = field(default_factory=dict)


class Expectations:
    """The checks of all rules that have some. Used by the gateway loop only."""

    def __init__(self) -> None:
        self._rules: dict[str, _Watched] = {}

    def watch(self, rule: str, checks: Sequence[Expect], now_ms: int) -> None:
        """Give a rule its checks; counts go on where they did not change."""
        known = self._rules.get(rule)
        if not checks:
            self._rules.pop(rule, None)
        elif known is None or known.checks != checks:
            self._rules[rule] = _Watched(checks, now_ms)

    def note(self, emission: Emission) -> None:
        """Count the rows of a result that break a check. The first of each check is logged."""
        watched = self._rules.get(emission.rule)
        if watched is None:
            return
        for row in emission.inserted:
            for number in broken(watched.checks, row):
                if number not in watched.counts:
                    check = watched.checks[number]
                    log.warning(
                        "rule.expect", extra={"rule": emission.rule, "check": check.name, "then": check.then}
                    )
                watched.counts[number] = watched.counts.get(number, 0) + 1
                watched.last_ms[number] = emission.at_ms

    def told(self, rule: str, fired_ms: int | None, now_ms: int) -> list[dict[str, Any]]:
        """The checks of a rule with their results; `fired_ms`: the time of its newest row."""
        watched = self._rules.get(rule)
        if watched is None:
            return []
        found: list[dict[str, Any]] = []
        for number, check in enumerate(watched.checks):
            if check.freshness is not None:
                age_ms = max(0, now_ms - (watched.since_ms if fired_ms is None else fired_ms))
                told: dict[str, Any] = {
                    "age_ms": age_ms,
                    "freshness_ms": check.freshness,
                    "stale": age_ms > check.freshness,
                }
            else:
                told = {"broken": watched.counts.get(number, 0), "last_ms": watched.last_ms.get(number)}
            found.append({"check": check.name, "then": check.then, **told})
        return found
