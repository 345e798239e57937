"""Checks of a statement in a context: the context that it names, and the relations that it may read."""

from __future__ import annotations

from sql import syntax as ast
from sql.catalog.streams import Catalog
from sql.errors import Problems, Span, did_you_mean
from sql.plan.context_plan import ContextPlan, reads_partition_alone
from sql.plan.logical import Plan


def check_statement(
    problems: Problems, context: ContextPlan, streams: set[str], span: Span, catalog: Catalog
) -> None:
    """A statement of a segmented context that reads streams reads one that the context divides."""
    known = catalog.streams
    events = {name for name in streams if name not in known or not known[name].is_relation}
    for level in context.levels:
        if events and level.listed and not level.listed & events:
            listed = " or ".join(f"'{name}'" for name in sorted(level.listed))
            problems.error(
                "B817",
                f"no part of the statement reads {listed}, which context '{level.name}' divides",
                span,
                "every event of other streams would be seen by every partition",
            )


def check_without_source(problems: Problems, select: ast.Select, plan: Plan) -> None:
    """Without FROM there are the properties of the partition only, shown when it starts or when it ends."""
    if plan.aggregates or plan.prevs or plan.where is not None or plan.group_by or plan.having is not None:
        problems.error(
            "B818", "without FROM there are the properties of the partition only", select.span, "add FROM"
        )
    limit = select.output
    if limit is not None and (
        limit.terminated is None or limit.every or limit.every_events or limit.at or limit.when
    ):
        problems.error(
            "B818",
            "without FROM a row comes when the partition starts, or when it ends",
            limit.span,
            "write OUTPUT WHEN TERMINATED, or nothing",
        )


def context_named(catalog: Catalog, name: str, problems: Problems, span: Span) -> ContextPlan | None:
    """The context a statement names; a problem where there is none."""
    found = catalog.contexts.get(name)
    if found is None:
        owner = next(
            (
                item.name
                for item in catalog.contexts.values()
                if item.nested and any(level.name == name for level in item.levels)
            ),
            None,
        )
        hint = f"'{name}' is a part of context '{owner}': name that" if owner else None
        problems.error(
            "B810",
            f"unknown context '{name}'",
            span,
            hint
            or did_you_mean(name, catalog.contexts)
            or "declare it under contexts:, or with create context",
        )
    return found


def note_ends(problems: Problems, plan: Plan) -> None:
    """A note where a column mixes what ends the partition with the event, whose row is made before it."""
    context, output = plan.context, plan.output
    if context is None or output is None or output.terminated is None or output.mode == "snapshot":
        return
    if plan.aggregates and output.mode != "default":
        return
    for item in plan.items:
        if context.names_end(item.value) and not reads_partition_alone(item.value):
            problems.warn(
                "B718",
                "the row is made before the partition ends: what ends it is NULL in an expression",
                item.value.span,
                "select it as a column of its own, or add a window and OUTPUT SNAPSHOT",
            )
