"""The compiled text of a rule, for people."""

from __future__ import annotations

from collections.abc import Iterator

from sql.catalog.streams import Catalog
from sql.codegen.functions import FunctionSet
from sql.compiler.program import Program
from sql.compiler.route import route_of
from sql.compiler.shared_code import Environment
from sql.compiler.statement.deferral import fits_cells
from sql.engine.query import QueryDecorator
from sql.engine.relations.on_select import LoopedSelect
from sql.engine.relations.triggered import Triggered
from sql.engine.rowwise_query import Rowwise
from sql.engine.sampled.sampled_query import SampledQuery
from sql.engine.start import compiler, start
from sql.engine.statement.once import Once
from sql.engine.statement.running_statement import RunningStatement
from sql.explain.stand_ins import catalog_of, has_own, partition_of
from sql.explain.words import slice_of
from sql.plan.logical import Plan
from sql.rows import Shape


def explain_code(name: str, plan: Plan, catalog: Catalog) -> str:
    """The functions that run a rule, under its SQL. In a context it is the text of one partition's statement,
    or the loop over the cells of all partitions; before it the loop that finds the partition of an event, if
    the rule is alone in its context and in processing time."""
    context, within = plan.context, catalog_of(catalog, plan)
    if context is not None and fits_cells(plan) and not has_own(catalog, context):
        program = Program(plan, Environment(name, within, 0), "cells")
        loop = route_of(
            context, plan.sources[0].stream, {name: plan}, within, program.context, is_single=True
        )
        route = "" if loop is None or plan.timestamp is not None else f"{loop.text.rstrip()}\n\n"
        return f"{_header(name, plan)}\n\n{route}{program.text.code.text}"
    is_recognized = any(source.recognize is not None for source in plan.sources)
    shape: Shape = "dict" if is_recognized else "struct"  # like the rows of its matches
    if context is None:
        found = start(plan, Environment(name, within, 0, shape=shape))
    else:
        env = Environment(name, within, 0, partition_of(plan, context))
        found = compiler(plan)(env)(env)
    query = found
    while isinstance(query, QueryDecorator | LoopedSelect):
        query = query.query
    if isinstance(query, SampledQuery):
        return "\n".join([f"{_header(name, plan)}\n", *_sampled(query)])
    if isinstance(query, RunningStatement):
        return "\n".join([f"{_header(name, plan)}\n", *_machines(query), query.code.text])
    if isinstance(query, Rowwise):
        return f"{_header(name, plan)}\n\n{query.code.text}"
    if isinstance(query, Triggered | Once):
        return "\n".join([f"{_header(name, plan)}\n", *_functions(query.functions, plan.text)])
    return f"{_header(name, plan)}\n# A declaration runs no code: the statements that write and read it do.\n"


def _functions(functions: FunctionSet, sql: str) -> Iterator[str]:
    """Functions of several lines, then those of one expression each: of the event `e` and the values `a` (of
    aggregates, or of the tags of a pattern)."""
    yield from (generated.text for generated in functions.generated)
    yield from dict.fromkeys(
        f"# {slice_of(sql, span)}\nlambda e, a, w: {text}\n" for text, span in functions.expressions
    )


def _sampled(query: SampledQuery) -> Iterator[str]:
    """The functions of a window in GROUP BY, then those of its rows, each under its constants."""
    core, rows = query.core, query.code.sampled_rows
    for functions, code in ((core.functions, core.code), (rows.functions, rows.code)):
        if constants := functions.names.constants:
            yield "".join(f"{name} = {value!r}\n" for name, value in constants.items())
        yield code.text


def _header(name: str, plan: Plan) -> str:
    sql = "\n".join(f"#     {line}" for line in plan.text.strip().splitlines())
    return f"# rule {name}\n{sql}"


def _machines(statement: RunningStatement) -> Iterator[str]:
    """The state machines of patterns and of match_recognize, whose matches are rows of the statement."""
    for recognized in statement.sources.recognized.values():
        yield recognized.code.code.text
    for matches in statement.sources.matches.values():
        yield from _functions(matches.functions, matches.plan.text)
