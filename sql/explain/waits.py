"""The filters and timers that live searches of a pattern wait for, with their number and the oldest one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from sql.algebra.pattern.machine import PatternWait
from sql.engine.context.context_member import ContextMember
from sql.engine.event_time.event_time_query import EventTime
from sql.engine.statement.matches import Matches
from sql.engine.statement.running_statement import RunningStatement
from sql.explain.pattern_tree import label
from sql.explain.timelines.timeline import label_of
from sql.rows import as_dict

SEARCHES_MAX = 10_000
"""The number of searches that are counted; there may be more."""


@dataclass(slots=True)
class Wait:
    """Searches that wait for the same filter or timer.

    what       the source text of the filter or timer
    count      the number of searches
    begun_ms   the instant since which the oldest waits
    due_ms     the instant at which its timer is true, or its time is over; None: not known or never
    tags       its events so far, by tag, as text
    """

    what: str
    count: int
    begun_ms: int
    due_ms: int | None
    tags: dict[str, str]


def waits(query: object) -> list[Wait]:
    """The filters and timers that a running rule waits for, of the searches that have begun."""
    found: dict[str, Wait] = {}
    for matches, search in islice(_searches(query), SEARCHES_MAX):
        what = label(search.step, matches.plan)
        known = found.get(what)
        if known is not None and known.begun_ms <= search.begun_ms:
            known.count += 1
            continue
        tags = {
            tag.name: _shown(value)
            for tag, value in zip(matches.plan.tags, search.tags, strict=True)
            if value is not None
        }
        count = 1 if known is None else known.count + 1
        found[what] = Wait(what, count, search.begun_ms, search.due_ms, tags)
    return list(found.values())


def _searches(query: object) -> Iterator[tuple[Matches, PatternWait]]:
    for statement in _statements(query):
        for matches in statement.sources.matches.values():
            yield from ((matches, search) for search in matches.pattern.searches())


def _statements(query: object) -> Iterator[RunningStatement]:
    """The statements of a rule; in a context those of its partitions."""
    if isinstance(query, EventTime):
        yield from _statements(query.query)
    elif isinstance(query, ContextMember):
        for body in query.bodies():
            yield from _statements(body.instance)
    elif isinstance(query, RunningStatement):
        yield query


def _shown(value: object) -> str:
    """The event of a tag, or the newest of several."""
    if isinstance(value, list):
        return f"{len(value)} events, the last {_shown(value[-1])}" if value else "none"
    return label_of(as_dict(value), None)
