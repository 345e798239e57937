"""Binding declarations of variables: of all statements, or one for each partition of a context."""

from __future__ import annotations

from collections.abc import Sequence

from sql import syntax as ast
from sql.binder.binding import no_subquery
from sql.binder.catalog_names import place_of
from sql.binder.contexts.statement_checks import context_named
from sql.binder.expressions.expression_binder import ExpressionBinder
from sql.binder.place import Place
from sql.binder.scope import Scope, Site, SourceScope
from sql.catalog.streams import Catalog
from sql.codegen.functions import FunctionSet, constant_value
from sql.codegen.support import Warnings
from sql.errors import Problems, SqlError, did_you_mean
from sql.functions.definition import Context
from sql.plan.bound import Bound
from sql.plan.declared import VariableDeclaration
from sql.plan.logical import Plan
from sql.plan.options import RuleOptions
from sql.types import Type, describe, type_named, type_names, type_of


def declare_variable(catalog: Catalog, statement: ast.CreateVariable, text: str) -> None:
    """Declare a variable with the value of its initialiser."""
    _check_new(statement, catalog, text)
    if type_named(statement.type_name) is None and statement.type_name not in catalog.streams:
        at = place_of(statement.type_name, statement.span, text)
        hint = did_you_mean(statement.type_name, type_names())
        raise SqlError.of("B101", f"unknown type '{statement.type_name}'", at, hint, text=text)
    if statement.value is None:
        catalog.define_variable(statement, None)
        return
    bound = bound_values([statement.value], catalog, [], text)
    value = constant_value(bound[0], FunctionSet(catalog, Context(), Warnings()))
    wrong = _misfit(statement, catalog.type_of_variable(statement), value)
    if wrong is not None:
        raise SqlError.of("B301", wrong, statement.value.span, text=text)
    catalog.define_variable(statement, value)


def plan_variable(statement: ast.CreateVariable, catalog: Catalog, options: RuleOptions, text: str) -> Plan:
    """The plan of `context C create variable`. Raises SqlError."""
    assert statement.context is not None
    problems = Problems()
    context = context_named(catalog, statement.context, problems, statement.in_context)
    problems.raise_if_any(text)
    _check_new(statement, catalog, text)
    apart = catalog.copied()
    declare_variable(apart, statement, text)
    found = apart.variables[statement.name]
    declared = VariableDeclaration(
        found.name, found.type, found.value, found.constant, found.element, found.event
    )
    return Plan(text, "delta", (), (), options, context=context, acts=declared)


def _check_new(statement: ast.CreateVariable, catalog: Catalog, text: str) -> None:
    """Raise SqlError where there is a variable of this name: one of all statements beside one of partitions
    would be hidden in these."""
    owners = catalog.context_variables
    known = owners.values() if statement.context is None else [owners.get(statement.context, {})]
    if statement.name in catalog.variables or any(statement.name in own for own in known):
        why = f"variable '{statement.name}' is declared already"
        raise SqlError.of("B551", why, statement.span, "choose another name", text=text)


def bound_values(
    nodes: Sequence[ast.Expr], catalog: Catalog, sources: list[SourceScope], text: str
) -> list[Bound]:
    """Expressions of declarations. Raises SqlError."""
    site = Site(catalog, RuleOptions(), text)
    expressions = ExpressionBinder(Scope(site, sources), no_subquery("B209", "here"))
    bound = [expressions.bind(node, Place("an assignment", analytics=False, aliases=False)) for node in nodes]
    site.raise_if_any()
    return bound


def _misfit(statement: ast.CreateVariable, kind: Type, value: object) -> str | None:
    """The reason why a variable cannot have its first value; None if it is of the variable's type."""
    if not kind.accepts(type_of(value)):
        return f"variable '{statement.name}' is {kind.value}, not {describe(value)}"
    of = type_named(statement.type_name)
    if of is None or not statement.array or not isinstance(value, list | tuple):
        return None
    others = (element for element in value if not of.accepts(type_of(element)))
    return next((f"elements of '{statement.name}' are {of.value}, not {describe(x)}" for x in others), None)
