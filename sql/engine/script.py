"""Scripts of several statements: what they declare is declared, what they run is started, in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from sql import syntax as ast
from sql.algebra.event import Event
from sql.binder.contexts.context_binder import bind_context
from sql.binder.scope import SourceScope
from sql.binder.statements.any_statement import bind_statement, is_bound
from sql.binder.statements.declarations import bind_index, declare_expression
from sql.binder.statements.event_types import check_types
from sql.binder.statements.variables import bound_values, declare_variable, plan_variable
from sql.catalog.streams import Catalog, Stream
from sql.codegen.functions import FunctionSet
from sql.codegen.support import Warnings
from sql.engine.engine import Engine
from sql.errors import DataError, Problems, SqlError
from sql.functions.definition import Context
from sql.language import parse
from sql.plan.options import RuleOptions
from sql.record import Record, replace
from sql.syntax.declared_expressions import written_out


def run_script(engine: Engine, text: str, now_ms: int, options: RuleOptions | None = None) -> list[str]:
    """Deploy every statement of `text` in order; the names of what was started. Raises
    SqlError for what is wrong."""
    return run_statements(engine, parse(text), text, now_ms, options)


def run_statements(
    engine: Engine, statements: Sequence[ast.Statement], text: str, now_ms: int, options: RuleOptions | None
) -> list[str]:
    """Deploy statements that were parsed from `text`, as `run_script` does."""
    options = options or RuleOptions()
    names = []
    for statement in statements:
        name = next((str(note.value) for note in statement.annotations if note.name == "name"), None)
        at = StatementStart(engine, name or _free_name(engine), now_ms, options, text)
        if _deploy(at, written_out(statement, engine.catalog.expressions, text)):
            names.append(at.name)
    return names


def _functions(catalog: Catalog) -> FunctionSet:
    return FunctionSet(catalog, Context(), Warnings())


def _free_name(engine: Engine) -> str:
    """A name for a statement that has none."""
    names = (f"statement-{number}" for number in count(len(engine.queries) + 1))
    return next(name for name in names if name not in engine.queries)


def _deploy(at: StatementStart, statement: ast.Statement) -> bool:
    """True if something was started under the name."""
    if is_bound(statement):
        plan = bind_statement(statement, at.catalog, at.options, at.text)
        rows = _rows_to_copy(at, statement) if isinstance(statement, ast.CreateWindow) else []
        at.engine.deploy(at.name, plan, at.now_ms)
        for row in rows:
            at.catalog.relations[plan.sources[0].stream].insert(row, at.now_ms)
        return True
    for kind, deploy in DEPLOYMENTS.items():
        if isinstance(statement, kind):
            return deploy(at, statement)
    why, hint = "this is asked on demand, not deployed", "use Engine.query"
    raise SqlError.of("B558", why, statement.span, hint, text=at.text)


class StatementStart(Record):
    """The place, the time and the name under which a statement is started."""

    engine: Engine
    name: str
    now_ms: int
    options: RuleOptions
    text: str

    @property
    def catalog(self) -> Catalog:
        return self.engine.catalog


def _stream_of(at: StatementStart, statement: ast.CreateStream) -> bool:
    known = at.catalog.streams.get(statement.name)
    if known is not None and known.is_relation:
        why = f"'{statement.name}' is declared already, as a {known.kind}"
        raise SqlError.of("B551", why, statement.span, text=at.text)
    stream = at.catalog.define(statement, at.text)
    at.engine.roster.forget_indexes()  # it may be of a type that statements read
    problems = Problems()
    for query in at.engine.queries.values():
        check_types(problems, query.plan, at.catalog, statement.span)
    if known is not None and not known.derived and not _is_same(known, stream):
        why = f"'{statement.name}' is declared already, otherwise"
        problems.error("B551", why, statement.span, "give it another name")
    if problems.found:
        del at.catalog.streams[statement.name]
        if known is not None:
            at.catalog.add(known)
    problems.raise_if_any(at.text)
    return False


def _is_same(known: Stream, stream: Stream) -> bool:
    """True if a declaration says again what is known; another text, `copyfrom` say, may say the same."""
    return replace(known, declared=()) == replace(stream, declared=())


def _variable(at: StatementStart, statement: ast.CreateVariable) -> bool:
    if statement.context is None:
        declare_variable(at.catalog, statement, at.text)
        return False
    plan = plan_variable(statement, at.catalog, at.options, at.text)
    at.engine.deploy(at.name, plan, at.now_ms)
    return True


def _expression(at: StatementStart, statement: ast.CreateExpression) -> bool:
    if statement.name in at.catalog.expressions:
        why = f"expression '{statement.name}' is declared already"
        raise SqlError.of("B551", why, statement.span, text=at.text)
    declare_expression(at.catalog, statement, at.text)
    return False


def _rows_to_copy(at: StatementStart, statement: ast.CreateWindow) -> list[dict[str, Any]]:
    """The rows of another named window that a new one begins with."""
    if not statement.fill or statement.like is None:
        return []
    other = at.catalog.relations[statement.like]
    rows = [event.row for event in other.content()]
    if statement.where is None:
        return rows
    scope = [SourceScope(statement.like, statement.like, at.catalog.streams[statement.like].columns)]
    bound = bound_values([statement.where], at.catalog, scope, at.text)
    passes = _functions(at.catalog).true(bound[0])
    return [row for row in rows if passes(Event(row, at.now_ms, 0))]


def _index(at: StatementStart, statement: ast.CreateIndex) -> bool:
    index = bind_index(statement, at.catalog, at.text)
    relation = at.catalog.relations[statement.relation]
    try:
        relation.create_index(index.name, index.equal, index.ordered, unique=index.unique)
    except DataError as error:
        raise SqlError.of("B559", str(error), statement.span, text=at.text) from None
    return False


def _context(at: StatementStart, statement: ast.CreateContext) -> bool:
    context = bind_context(statement, at.catalog, at.options, at.text)
    named = any(note.name == "name" for note in statement.annotations)
    at.engine.deployment.declare(at.name if named else f"context {context.name}", context)
    return True


DEPLOYMENTS: dict[type[ast.Statement], Callable[[StatementStart, Any], bool]] = {
    ast.CreateStream: _stream_of,
    ast.CreateVariable: _variable,
    ast.CreateExpression: _expression,
    ast.CreateContext: _context,
    ast.CreateIndex: _index,
}
"""The function that starts each kind of statement."""
