"""The contexts of a file: texts by name, or mappings with bounds."""

from __future__ import annotations

from rules.contexts import Context, prefix_of
from rules.read.reading import LoadedContext, Reading, declared, named
from sql.binder.contexts.context_binder import bind_context
from sql.catalog.streams import Catalog
from sql.errors import Problem, Span, SqlError
from sql.language import parse
from sql.plan.context_plan import ContextPlan, EventPointPlan, KeyedPlan
from sql.plan.options import RuleOptions
from sql.record import replace
from sql.syntax import CreateContext


def read_contexts(reading: Reading, data: object) -> list[LoadedContext]:
    """The contexts under `contexts`: a mapping of names to the text behind `create context NAME`."""
    members = named(reading, data, "contexts", "contexts")
    found = (declared(reading, Context, item, ("contexts", name)) for name, item in members.items())
    return [context for context in found if context is not None]


def bind(loaded: LoadedContext, catalog: Catalog, zone: str) -> ContextPlan:
    """The plan of a context. Raises SqlError with spans that count in its text in the file."""
    context, prefix = loaded.declaration, prefix_of(loaded.name)
    text = prefix + context.sql
    try:
        statements = parse(text)
        if len(statements) != 1 or not isinstance(statements[0], CreateContext):
            span = Span(len(prefix), len(text))
            raise SqlError.of("P020", "a context is one declaration", span, text=text)
        options = RuleOptions(zone=context.timezone or zone, catch_up=context.catch_up)
        plan = bind_context(statements[0], catalog, options, text)
        if context.idle is not None:
            _check_idle(plan, Span(len(prefix), len(text)))
    except SqlError as error:
        raise SqlError([_moved(problem, len(prefix)) for problem in error.problems], context.sql) from None
    return replace(
        plan,
        priority=context.priority,
        max_partitions=context.max_partitions,
        oldest_first=context.when_full == "oldest",
        idle_ms=context.idle,
    )


def _check_idle(plan: ContextPlan, span: Span) -> None:
    """Raise SqlError where partitions cannot end by their key's silence."""
    ends = [level.kind.end for level in plan.levels if isinstance(level.kind, KeyedPlan)]
    if not ends:
        message = f"idle ends partitions by key, and context '{plan.name}' has none"
        raise SqlError.of("B816", message, span, "leave idle out, or write partition by")
    if any(end is not None and not isinstance(end, EventPointPlan) for end in ends):
        message = "idle stands beside an end by an event, not by time or by a pattern"
        raise SqlError.of("B816", message, span, "leave one of the two out")


def warnings_of(plan: ContextPlan) -> list[Problem]:
    """Warnings about valid, rarely intended contexts: a partition for every key, which nothing ends."""
    if not plan.endless:
        return []
    message = (
        f"partitions by key never end: each key ever met keeps one, up to {plan.max_partitions:,} of them"
    )
    return [Problem("R210", message, Span(0, 0), "set idle: 1h, or add TERMINATED BY", "warning")]


def _moved(problem: Problem, by: int) -> Problem:
    span = Span(max(0, problem.span.start - by), max(0, problem.span.end - by))
    return replace(problem, span=span)
