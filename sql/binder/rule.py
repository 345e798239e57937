"""From the text of a rule to its plan: parse, bind, and the checks that need the whole."""

from __future__ import annotations

from dataclasses import replace

import sql.aggregates
import sql.functions  # noqa: F401 - fill the registries
from sql import syntax as ast
from sql.binder.select import bind
from sql.catalog.streams import Catalog
from sql.errors import Problems, Span
from sql.language import parse
from sql.plan.logical import Plan
from sql.plan.options import RuleOptions


def plan_rule(text: str, catalog: Catalog, options: RuleOptions | None = None, context: str | None = None) -> Plan:
    """The plan of a rule's SQL, in the partitions of `context` if that is given.

    Raises SqlError holding every problem; `plan.warnings` has what is only odd.
    """
    statements = parse(text)
    problems = Problems()
    if len(statements) != 1 or not isinstance(statements[0], ast.Select):
        extra = statements[1].span if len(statements) > 1 else Span(0, len(text))
        problems.error("B001", "a rule is one SELECT statement", extra, "declare streams under streams:")
        problems.raise_if_any(text)
    statement = statements[0]
    assert isinstance(statement, ast.Select)
    if context is not None and statement.context not in (None, context):
        problems.error("B820", f"the statement names context '{statement.context}', the rule '{context}'",
                       statement.span, "name it once")  # fmt: skip
        problems.raise_if_any(text)
    if context is not None:
        statement = replace(statement, context=context)
    if statement.source is None and statement.context is None:
        problems.error("B002", "a rule reads at least one stream: FROM is missing", statement.span)
        problems.raise_if_any(text)
    return bind(statement, catalog, options or RuleOptions(), text)
