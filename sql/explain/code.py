"""The compiled text of a rule, as a person reads it."""

from __future__ import annotations

from dataclasses import replace

from sql.algebra.sample.query import SampledQuery
from sql.catalog.streams import Catalog
from sql.engine.rowwise import Rowwise
from sql.engine.statement import Statement
from sql.plan.logical import Plan
from sql.rows import Shape
from sql.runtime.event_time import EventTime
from sql.runtime.start import start


def explain_code(name: str, plan: Plan, catalog: Catalog, shape: Shape = "struct") -> str:
    """The functions that run a rule, under its SQL. In a context it is the text of one partition's statement."""
    found = start(name, replace(plan, context=None), catalog, 0, shape=shape)
    query = found.query if isinstance(found, EventTime) else found
    if isinstance(query, SampledQuery):
        return query.source
    if isinstance(query, Rowwise | Statement):
        return f"{_header(name, plan)}\n\n{query.code.text}"
    return f"{_header(name, plan)}\n# It gives one row, without a loop.\n"


def _header(name: str, plan: Plan) -> str:
    sql = "\n".join(f"#     {line}" for line in plan.text.strip().splitlines())
    return f"# rule {name}\n{sql}"
