"""The rules suspended now by `cron`, `duration` and `cronDatetimeRange`, and the time of the next change.

A rule that falls asleep is taken out of the engine, with its windows, and reads its streams no more; its
actions go on to deliver what they have. When its time comes it begins anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rules.compiled import CompiledRule
from rules.schedule import Schedule


def _scheduled(rules: Iterable[CompiledRule]) -> Iterator[tuple[str, Schedule]]:
    for rule in rules:
        schedule = rule.options.schedule(rule.plan.options.zone_info())
        if schedule is not None:
            yield rule.id, schedule


def asleep(rules: Mapping[str, CompiledRule], now_ms: int) -> dict[str, int | None]:
    """The rules that do not run now, and when each runs next; None: never again."""
    return {
        name: found.next_on(now_ms) for name, found in _scheduled(rules.values()) if not found.is_on(now_ms)
    }


def look_again_ms(rules: Mapping[str, CompiledRule], now_ms: int) -> int | None:
    """The next instant at which a scheduled rule may begin or end."""
    instants = (found.look_again(now_ms) for _, found in _scheduled(rules.values()))
    return min((at_ms for at_ms in instants if at_ms is not None), default=None)
