"""The doubts, and their application to all rules.

A doubt is a warning: the rule runs. To add one, write a function
and list it in `DOUBTS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from rules.compile import sql_path
from rules.compiled import Compiled, CompiledRule
from rules.lint.ranges import COMPARING, Column, Range, comparisons, covers, parts, range_of
from rules.problems import FileProblem
from sql.errors import Problem, Span
from sql.explain.tree import unbounded
from sql.plan.bound import Bound, Const, Op, Read
from sql.plan.logical import Plan

Samples = Mapping[str, frozenset[str]]
"""The columns that sample events of a stream have, by stream."""


Doubt = Callable[[CompiledRule, Samples], Iterator[Problem]]
"""The doubts of one kind about a rule, with the columns of sample events."""


def _warning(code: str, message: str, span: Span, hint: str | None = None) -> Problem:
    return Problem(code, message, span, hint, "warning")


def _never_seen(rule: CompiledRule, samples: Samples) -> Iterator[Problem]:
    """Columns that no sample event of their stream has: they read NULL."""
    told = set()
    for node in _expressions(rule):
        for read in node.walk():
            if isinstance(read, Read) and read.column is not None and read.source < len(rule.plan.sources):
                stream = rule.plan.sources[read.source].stream
                seen = samples.get(stream)
                if seen is not None and read.column not in seen and (stream, read.column) not in told:
                    told.add((stream, read.column))
                    message = f"no sample event of '{stream}' has the column '{read.column}'"
                    yield _warning("R203", message, read.span, f"the samples have {', '.join(sorted(seen))}")


def _never_fills(rule: CompiledRule, samples: Samples) -> Iterator[Problem]:
    """A window of more events than a rule may retain, or that no event enters or begins."""
    window, most = rule.plan.window, rule.plan.options.max_window_events
    if window is None:
        return
    if window.size > most:
        message = f"the window waits for {window.size} events, and the rule may retain {most}"
        yield _warning("R204", message, window.span, "raise maxWindowEvents, or take fewer events")
    for condition, what in (
        (window.filter, "FILTER lets no event in"),
        (window.begin, "no event begins it"),
        (window.when, "no event triggers it"),
    ):
        if condition is not None and never(condition):
            yield _warning("R204", f"the window never fills: {what}", condition.span)


def _always_true(rule: CompiledRule, samples: Samples) -> Iterator[Problem]:
    """Conditions that every event meets, such as `x != 1 OR x != 2`."""
    for name, condition in _conditions(rule):
        if always(condition):
            hint = "leave it out; perhaps AND was meant instead of OR"
            yield _warning("R205", f"{name} is always true", condition.span, hint)


def _never_true(rule: CompiledRule, samples: Samples) -> Iterator[Problem]:
    """Conditions that no event meets, such as `x > 5 AND x < 3`."""
    for name, condition in _conditions(rule):
        if never(condition):
            hint = "perhaps OR was meant instead of AND"
            yield _warning("R206", f"{name} is never true", condition.span, hint)


def _unbounded(rule: CompiledRule, samples: Samples) -> Iterator[Problem]:
    """State whose size depends on the data alone: `explain` marks it as unbounded, unless the rule sets a
    bound. One doubt for each reason, at the windows of the rule."""
    plan = rule.plan
    if "max_window_events" in rule.options.model_fields_set:
        return
    spans = [window.span for source in plan.sources for window in source.windows]
    span = spans[0].to(spans[-1]) if spans else plan.window.span if plan.window is not None else Span(0, 6)
    for reason in unbounded(plan):
        most = f"; from {plan.options.max_window_events:,} events on (maxWindowEvents) each is an error"
        hint = "add a bound, such as #length(1000) or #time(1 hour), or set the option maxWindowEvents"
        yield _warning("R207", f"nothing bounds the state: {reason}{most}", span, hint)


def _never_resets(rule: CompiledRule, samples: Samples) -> Iterator[Problem]:
    """The first aggregate without a window: it takes in every event since the rule began."""
    if rule.plan.aggregates and not _forgets(rule.plan):
        call = rule.plan.aggregates[0]
        reason = "without a window it counts every event since the rule began"
        hint = "add a window, such as GROUP BY TUMBLINGWINDOW(ss, 10), if that is not meant"
        yield _warning("R208", f"{call.definition.name}() never resets: {reason}", call.span, hint)


def _compared_with_null(rule: CompiledRule, samples: Samples) -> Iterator[Problem]:
    """Comparisons with NULL, such as `x = NULL`, which is NULL itself, and so never true."""
    filters = (condition for _, condition in _conditions(rule))
    nodes = {part.span: part for node in (*_expressions(rule), *filters) for part in node.walk()}
    for span, node in nodes.items():
        if (
            isinstance(node, Op)
            and node.name in COMPARING
            and any(isinstance(arg, Const) and arg.value is None for arg in node.args)
        ):
            hint = "write IS NULL or IS NOT NULL"
            yield _warning("R209", "a comparison with NULL is never true", span, hint)


DOUBTS: tuple[Doubt, ...] = (
    _never_seen,
    _never_fills,
    _always_true,
    _never_true,
    _unbounded,
    _never_resets,
    _compared_with_null,
)


def lint(compiled: Compiled, samples: Samples | None = None) -> list[FileProblem]:
    """All doubts about the rules of the files, each with its place."""
    return [
        rule.rule.reading.sql_problem(problem, sql_path(rule.rule))
        for rule in compiled.rules.values()
        for doubt in DOUBTS
        for problem in doubt(rule, samples or {})
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


def _forgets(plan: Plan) -> bool:
    """True if the plan resets its aggregates, or keeps them on purpose."""
    if (
        plan.window is not None
        or plan.context is not None
        or plan.into_table is not None
        or plan.acts is not None
    ):
        return True
    return any(
        source.keeps
        or source.lot is not None
        or source.pattern is not None
        or source.recognize is not None
        or source.retained_rows is not None
        for source in plan.sources
    )
