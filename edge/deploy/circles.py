"""Rules that feed each other in a circle: `insert into` or a memory action leads back
to a stream that was read.

Such rules are legal, and end where a condition lets no row through. Where none does, each event makes rows
without end: those of `insert into` up to a bound of the engine, those of memory topics as fast as the gateway
can.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from edge.deploy.stream_types import MEMORY, stream_type
from rules.compiled import Compiled, CompiledRule
from rules.problems import FileProblem
from rules.secrets import reveal
from sinks.builtin.memory import MemorySettings
from sinks.memory_bus import may_match
from sql.catalog.streams import Catalog
from sql.errors import Problem

HINT = "write to another stream, or filter so that the circle ends"


class _Step(NamedTuple):
    """A rule that reads one stream and writes to another."""

    source: str
    rule: CompiledRule
    target: str


def circle_problems(compiled: Compiled) -> list[FileProblem]:
    """A warning for each circle, at the rule that closes it. A rule that inserts into its own
    stream gets a note from its plan instead."""
    steps: dict[str, list[_Step]] = {}
    for rule in compiled.rules.values():
        for target in targets(rule, compiled.catalog):
            for source in rule.plan.streams:
                steps.setdefault(source, []).append(_Step(source, rule, target))
    found: dict[frozenset[str], FileProblem] = {}
    for stream in steps:
        circle = _shortest_circle(stream, steps)
        rules = frozenset(step.rule.id for step in circle)
        if circle and not (len(circle) == 1 and circle[0].rule.plan.insert_into == stream):
            found.setdefault(rules, _problem(circle))
    return list(found.values())


def targets(rule: CompiledRule, catalog: Catalog) -> Iterator[str]:
    """The streams that the results of a rule, its late events and its errors may enter; a row of a type also
    belongs to the types that this inherits."""
    if rule.plan.insert_into is not None:
        yield from catalog.lineage(rule.plan.insert_into)
    loaded = rule.rule
    topics = [
        reveal(action.settings.topic)
        for action in loaded.all_actions
        if isinstance(action.settings, MemorySettings)
    ]
    for name, stream in catalog.streams.items() if topics else ():
        if stream_type(stream) == MEMORY and any(may_match(stream.datasource, topic) for topic in topics):
            yield name


def moves(rules: Iterable[CompiledRule], catalog: Catalog) -> list[tuple[str, str]]:
    """Pairs of streams: rows of a rule that reads the first enter the second."""
    return [
        (stream, target)
        for rule in rules
        for target in targets(rule, catalog)
        for stream in rule.plan.streams
    ]


def _shortest_circle(start: str, steps: dict[str, list[_Step]]) -> list[_Step]:
    """The way from a stream back to itself over the fewest rules; empty where there is none."""
    came: dict[str, _Step] = {}
    open_streams = deque([start])
    while open_streams and start not in came:
        for step in steps.get(open_streams.popleft(), ()):
            if step.target not in came:
                came[step.target] = step
                open_streams.append(step.target)
    if start not in came:
        return []
    way = [came[start]]
    while way[-1].source != start:
        way.append(came[way[-1].source])
    return way[::-1]


def _problem(circle: list[_Step]) -> FileProblem:
    way = " -> ".join(f"{step.rule.id} -> stream {step.target}" for step in circle)
    who = "the rule feeds itself" if len(circle) == 1 else "rules feed each other"
    loaded = circle[-1].rule.rule
    message = f"{who} in a circle: stream {circle[0].source} -> {way}"
    return loaded.reading.problem_at(
        Problem("E102", message, hint=HINT, severity="warning"), loaded.name_span
    )
