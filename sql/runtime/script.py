"""Scripts of several statements: schemas and variables are declared, queries started, in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sql import syntax as ast
from sql.binder import select as binder
from sql.binder.contexts import bind_context, check_statement, context_named, priority_of
from sql.binder.expressions import ExpressionBinder, Place
from sql.binder.scope import Scope, SourceScope
from sql.catalog.streams import Catalog, Stream
from sql.codegen.functions import FunctionSet, constant_value
from sql.codegen.support import Warnings
from sql.errors import Problems, Span, did_you_mean
from sql.functions.registry import Context
from sql.language import parse
from sql.plan.bound import Bound, Const
from sql.plan.contexts import ContextPlan
from sql.plan.logical import Plan, SourcePlan
from sql.plan.options import RuleOptions
from sql.runtime.context.member import MakeInstance
from sql.runtime.context.variables import SetInstance, VariableInstance
from sql.runtime.emission import Emission
from sql.runtime.engine import Engine
from sql.windows.event import Event


def run_script(engine: Engine, text: str, now_ms: int, options: RuleOptions | None = None) -> list[str]:
    """Deploy every statement of `text` in order; the names of what was started. Raises SqlError for what is wrong."""
    options = options or RuleOptions()
    names = []
    for statement in parse(text):
        name = next((str(note.value) for note in statement.annotations if note.name == "name"), None)
        name = name or f"statement-{len(engine.queries) + 1}"
        if _deploy(engine, name, statement, now_ms, options, text):
            names.append(name)
    return names


def _deploy(engine: Engine, name: str, statement: ast.Statement, now_ms: int, options: RuleOptions, text: str) -> bool:
    """Whether something was started under the name."""
    catalog = engine.catalog
    if isinstance(statement, ast.CreateStream):
        catalog.define(statement)
        return False
    if isinstance(statement, ast.CreateVariable | ast.OnSet) and statement.context is not None:
        in_context(engine, name, statement, now_ms, options, text)
        return True
    if isinstance(statement, ast.CreateVariable):
        declare_variable(catalog, statement, text)
        return False
    if isinstance(statement, ast.UpdateStream):
        change = _update(catalog, statement, text)
        engine.before.setdefault(statement.stream, []).append(change)
        return False
    if isinstance(statement, ast.OnSet):
        on_set = OnSet(name, engine, statement, text)
        engine.host(name, on_set, [statement.source.name])
        return True
    if isinstance(statement, ast.CreateContext):
        context = bind_context(statement, catalog, options, text)
        named = any(note.name == "name" for note in statement.annotations)
        engine.declare(name if named else f"context {context.name}", context)
        return True
    assert isinstance(statement, ast.Select)
    engine.deploy(name, binder.bind(statement, catalog, options, text), now_ms)
    return True


def declare_variable(catalog: Catalog, statement: ast.CreateVariable, text: str) -> None:
    """Declare a variable with the value of its initialiser."""
    value = None
    if statement.value is not None:
        bound, _ = _bind([statement.value], catalog, [], text)
        value = constant_value(bound[0], _functions(catalog))
    catalog.define_variable(statement, value)


def in_context(engine: Engine, name: str, statement: ast.CreateVariable | ast.OnSet, now_ms: int, options: RuleOptions,
               text: str) -> None:  # fmt: skip
    """Start `create variable` or `on … set` in the partitions of its context."""
    catalog, problems = engine.catalog, Problems()
    context = context_named(catalog, statement.context or "", problems, statement.span)
    problems.raise_if_any(text)
    assert context is not None
    own = catalog.context_variables.setdefault(context.name, {})
    plan = Plan(text, "delta", (), (), options, context=context, priority=priority_of(statement))
    make: MakeInstance
    if isinstance(statement, ast.CreateVariable):
        apart = Catalog()
        declare_variable(apart, statement, text)
        declared = own[statement.name] = apart.variables[statement.name]
        make = lambda member, catalog, now_ms, row: VariableInstance(name, plan, declared)  # noqa: E731
    else:
        plan, setters = _bound_set(catalog.within(own), statement, plan, context, text)
        make = lambda member, catalog, now_ms, row: SetInstance(name, plan, catalog, row, setters)  # noqa: E731
    engine.deploy_in_context(name, plan, now_ms, make)


def _bound_set(catalog: Catalog, statement: ast.OnSet, plan: Plan, context: ContextPlan, text: str
               ) -> tuple[Plan, list[tuple[str, Bound]]]:  # fmt: skip
    """The plan of an `on … set` in a context, and what it sets."""
    source = statement.source
    stream = _stream(catalog, source.name, source.span, text)
    nodes = [item.value for item in statement.assignments] + ([source.filter] if source.filter else [])
    bound, scope = _bind(nodes, catalog, [SourceScope(source.alias, stream.name, stream.columns)], text, context)
    for item in statement.assignments:
        if item.name not in catalog.variables:
            scope.problems.error("B207", f"unknown variable '{item.name}'", item.span,
                                 did_you_mean(item.name, catalog.variables))  # fmt: skip
    check_statement(scope.problems, context, {source.name}, statement.span)
    scope.problems.raise_if_any(text)
    condition = bound[-1] if source.filter else None
    reads: dict[str, frozenset[str] | None] = {**context.reads, source.name: None}
    setters = [(item.name, value) for item, value in zip(statement.assignments, bound, strict=False)]
    return replace(plan, sources=(SourcePlan(source.name, source.alias, condition),), reads=reads), setters


def _functions(catalog: Catalog) -> FunctionSet:
    return FunctionSet(catalog, Context(), Warnings())


def _bind(nodes: Sequence[ast.Expr], catalog: Catalog, sources: list[SourceScope], text: str,
          context: ContextPlan | None = None) -> tuple[list[Bound], Scope]:  # fmt: skip
    problems = Problems()
    scope = Scope(catalog, problems, sources, context=context)

    def no_subquery(node: ast.Subquery) -> Bound:
        problems.error("B209", "a subquery cannot stand here", node.span)
        return Const(None)

    expressions = ExpressionBinder(scope, no_subquery)
    expressions.text, expressions.epl = text, True
    bound = [expressions.bind(node, Place("an assignment", analytics=False, aliases=False)) for node in nodes]
    problems.raise_if_any(text)
    return bound, scope


def _stream(catalog: Catalog, name: str, span: Span, text: str) -> Stream:
    stream = catalog.streams.get(name)
    if stream is None:
        problems = Problems()
        problems.error("B202", f"unknown stream '{name}'", span)
        problems.raise_if_any(text)
    assert stream is not None
    return stream


def _update(catalog: Catalog, statement: ast.UpdateStream, text: str) -> Any:
    stream = _stream(catalog, statement.stream, statement.span, text)
    scope = [SourceScope(stream.name, stream.name, stream.columns)]
    nodes = [item.value for item in statement.assignments] + ([statement.where] if statement.where else [])
    bound, _ = _bind(nodes, catalog, scope, text)
    functions = _functions(catalog)
    passes = functions.true(bound[-1]) if statement.where else None
    setters = [(item.name, functions.value(value)) for item, value in zip(statement.assignments, bound, strict=False)]

    def change(row: dict[str, Any]) -> dict[str, Any]:
        event = Event(row, 0, 0)
        if passes is not None and not passes(event):
            return row
        return {**row, **{name: value(event) for name, value in setters}}

    return change


class OnSet:
    """`on Stream set variable = …`: later statements of the same event see the new values."""

    steps_itself = False
    takes_lots = False

    def __init__(self, name: str, engine: Engine, statement: ast.OnSet, text: str) -> None:
        source = statement.source
        stream = _stream(engine.catalog, source.name, source.span, text)
        scope = [SourceScope(source.alias, stream.name, stream.columns)]
        nodes = [item.value for item in statement.assignments] + ([source.filter] if source.filter else [])
        bound, _ = _bind(nodes, engine.catalog, scope, text)
        functions = _functions(engine.catalog)
        self.name = name
        self.engine = engine
        self.passes = functions.true(bound[-1]) if source.filter else None
        self.setters = [
            (a.name, functions.value(value)) for a, value in zip(statement.assignments, bound, strict=False)
        ]
        plan_source = SourcePlan(source.name, source.alias)
        self.plan = Plan(text, "delta", (plan_source,), (), RuleOptions(), reads={source.name: None})

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        out = []
        for row in rows:
            event = Event(row, now_ms, 0)
            if self.passes is not None and not self.passes(event):
                continue
            for name, value in self.setters:
                self.engine.set_variable(name, value(event))
            values = {name: self.engine.catalog.variables[name].value for name, _ in self.setters}
            out.append(Emission(self.name, now_ms, "rows", [values]))
        return out

    def push_lot(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        return self.push(stream, rows, now_ms)

    def advance(self, now_ms: int) -> list[Emission]:
        return []

    def next_deadline(self) -> int | None:
        return None

    def flush(self, now_ms: int) -> list[Emission]:
        return []

    def reject(self, row: Any, why: str, now_ms: int) -> list[Emission]:
        return [Emission(self.name, now_ms, "error", [dict(row)], (), why)]

    def unseen(self, emissions: list[Emission]) -> list[Emission]:
        return emissions

    def variable_changed(self, name: str) -> None:
        return None

    def read(self, now_ms: int) -> list[dict[str, Any]]:
        return []

    def counters(self) -> dict[str, int]:
        return {}

    def snapshot(self) -> dict[str, Any]:
        return {}

    def restore(self, snapshot: dict[str, Any]) -> None:
        return None
