"""Relations of a context: the statements that may read and write the rows of its partitions."""

from __future__ import annotations

from sql import syntax as ast
from sql.catalog.streams import Catalog
from sql.errors import Problems
from sql.plan.logical import Plan, TriggerPlan


def check_ownership(problems: Problems, plan: Plan, catalog: Catalog, statement: ast.Statement) -> None:
    """Report a statement that uses a relation of a context in whose partitions it does not run.

    Any statement may select from a named window, and then reads all partitions; and any may insert into it: a
    row goes to the partitions that it belongs to.
    """
    mine = None if plan.context is None else plan.context.name
    free = (
        {source.stream for source in plan.sources if source.relation == "window"}
        if plan.acts is None
        else set()
    )
    used = set(plan.relations)
    if isinstance(plan.acts, TriggerPlan):
        used.add(plan.acts.relation)
    if plan.into_table is not None:
        used.add(plan.into_table.table)
    for name in sorted(used - free):
        owner = catalog.streams[name].context if name in catalog.streams else None
        if owner is not None and owner != mine:
            message = f"'{name}' has rows of its own in each partition of context '{owner}'"
            problems.error("B821", message, statement.span, f"write CONTEXT {owner} before the statement")
