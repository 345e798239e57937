"""The doubts, and their application to all rules.

A doubt is a warning: the rule runs. To add one, write a class with `code` and `find`,
and list it in `DOUBTS`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Protocol

from rules.compile import sql_path
from rules.compiled import Compiled, CompiledRule
from rules.lint.ranges import COMPARING, Column, Range, comparisons, covers, parts, range_of
from rules.lint.state import NeverResets, Unbounded
from rules.problems import FileProblem
from sql.errors import Problem
from sql.plan.bound import Bound, Const, Op, Read

Samples = Mapping[str, frozenset[str]]
"""The columns that sample events of a stream have, by stream."""


class Doubt(Protocol):
    """The interface of a doubt."""

    code: ClassVar[str]

    def find(self, rule: CompiledRule, samples: Samples) -> Iterator[Problem]:
        """The doubts of this kind about a rule."""


class NeverSeen:
    """A column that no sample event of its stream has: it reads NULL."""

    code: ClassVar[str] = "R203"

    def find(self, rule: CompiledRule, samples: Samples) -> Iterator[Problem]:
        told = set()
        for node in _expressions(rule):
            for read in node.walk():
                if (
                    isinstance(read, Read)
                    and read.column is not None
                    and read.source < len(rule.plan.sources)
                ):
                    stream = rule.plan.sources[read.source].stream
                    seen = samples.get(stream)
                    if seen is not None and read.column not in seen and (stream, read.column) not in told:
                        told.add((stream, read.column))
                        yield Problem(
                            self.code,
                            f"no sample event of '{stream}' has the column '{read.column}'",
                            read.span,
                            f"the samples have {', '.join(sorted(seen))}",
                            "warning",
                        )


class NeverFills:
    """A window of more events than a rule may retain, or that no event enters or begins."""

    code: ClassVar[str] = "R204"

    def find(self, rule: CompiledRule, samples: Samples) -> Iterator[Problem]:
        window, most = rule.plan.window, rule.plan.options.max_window_events
        if window is None:
            return
        if window.size > most:
            yield Problem(
                self.code,
                f"the window waits for {window.size} events, and the rule may retain {most}",
                window.span,
                "raise maxWindowEvents, or take fewer events",
                "warning",
            )
        for condition, what in (
            (window.filter, "FILTER lets no event in"),
            (window.begin, "no event begins it"),
            (window.when, "no event triggers it"),
        ):
            if condition is not None and never(condition):
                yield Problem(self.code, f"the window never fills: {what}", condition.span, None, "warning")


class AlwaysTrue:
    """A condition that every event meets, such as `x != 1 OR x != 2`."""

    code: ClassVar[str] = "R205"

    def find(self, rule: CompiledRule, samples: Samples) -> Iterator[Problem]:
        for name, condition in _conditions(rule):
            if always(condition):
                yield Problem(
                    self.code,
                    f"{name} is always true",
                    condition.span,
                    "leave it out; perhaps AND was meant instead of OR",
                    "warning",
                )


class NeverTrue:
    """A condition that no event meets, such as `x > 5 AND x < 3`."""

    code: ClassVar[str] = "R206"

    def find(self, rule: CompiledRule, samples: Samples) -> Iterator[Problem]:
        for name, condition in _conditions(rule):
            if never(condition):
                yield Problem(
                    self.code,
                    f"{name} is never true",
                    condition.span,
                    "perhaps OR was meant instead of AND",
                    "warning",
                )


class ComparedWithNull:
    """A comparison with NULL, such as `x = NULL`, which is NULL itself, and so never true."""

    code: ClassVar[str] = "R209"

    def find(self, rule: CompiledRule, samples: Samples) -> Iterator[Problem]:
        filters = (condition for _, condition in _conditions(rule))
        nodes = {part.span: part for node in (*_expressions(rule), *filters) for part in node.walk()}
        for span, node in nodes.items():
            if (
                isinstance(node, Op)
                and node.name in COMPARING
                and any(isinstance(arg, Const) and arg.value is None for arg in node.args)
            ):
                yield Problem(
                    self.code,
                    "a comparison with NULL is never true",
                    span,
                    "write IS NULL or IS NOT NULL",
                    "warning",
                )


DOUBTS: tuple[Doubt, ...] = (
    NeverSeen(),
    NeverFills(),
    AlwaysTrue(),
    NeverTrue(),
    Unbounded(),
    NeverResets(),
    ComparedWithNull(),
)


def lint(compiled: Compiled, samples: Samples | None = None) -> list[FileProblem]:
    """All doubts about the rules of the files, each with its place."""
    return [
        rule.rule.reading.sql_problem(problem, sql_path(rule.rule))
        for rule in compiled.rules.values()
        for doubt in DOUBTS
        for problem in doubt.find(rule, samples or {})
    ]


def always(condition: Bound) -> bool:
    """True if a condition admits every event whose columns are not NULL."""
    if isinstance(condition, Const):
        return condition.value is True
    known = comparisons(parts(condition, "or"))
    return any(
        one[0] == other[0] and covers(one[1:], other[1:])
        for place, one in enumerate(known)
        for other in known[place + 1 :]
    )


def never(condition: Bound) -> bool:
    """True if a condition admits no event."""
    if isinstance(condition, Const):
        return condition.value is False or condition.value is None
    ranges: dict[Column, Range] = {}
    for column, op, number in comparisons(parts(condition, "and")):
        ranges[column] = ranges.get(column, Range()).and_(range_of(op, number))
    return any(allowed.is_empty for allowed in ranges.values())


def _conditions(rule: CompiledRule) -> Iterator[tuple[str, Bound]]:
    plan = rule.plan
    if plan.where is not None:
        yield "WHERE", plan.where
    for source in plan.sources:
        if source.filter is not None:
            yield "the filter in FROM", source.filter


def _expressions(rule: CompiledRule) -> Iterator[Bound]:
    """Expressions that read events of the sources directly."""
    plan = rule.plan
    yield from (item.value for item in plan.items if item.value is not None)
    yield from (node for node in (plan.where, plan.having) if node is not None)
    yield from plan.group_by
    for call in plan.aggregates:
        yield from call.args
