"""Binding expressions: names to columns, calls to definitions, operands to types. Reports, never raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sql import syntax as ast
from sql.binder.binding import Binding, BindSubquery
from sql.binder.calls import call_binder
from sql.binder.expressions import access_binder, comparisons, operator_binder
from sql.binder.expressions.name_binder import NameBinder
from sql.binder.place import Place
from sql.binder.scope import UNKNOWN, Scope
from sql.binder.statement_kind import EPL, StatementKind
from sql.plan.bound import Bound

MISPLACED: dict[type[ast.Expr], tuple[str, str]] = {
    ast.Star: ("B202", "'*' stands only in SELECT and in functions that take whole rows"),
    ast.Ordering: ("B304", "ASC and DESC stand only in sort criteria"),
    ast.Lambda: ("B305", "'=>' stands only inside an enumeration method"),
    ast.PeriodLiteral: (
        "B306",
        "a length of time stands only where windows, patterns and output limits take one",
    ),
}
"""What is an expression only at the places that expect it: the code and the message everywhere else."""


class ExpressionBinder(Binding):
    """Binds expressions of one statement."""

    def __init__(self, scope: Scope, bind_subquery: BindSubquery, kind: StatementKind = EPL) -> None:
        super().__init__(scope, bind_subquery, kind)
        self.names = NameBinder(self)

    def bind(self, node: ast.Expr, place: Place) -> Bound:
        """The bound form of an expression; `UNKNOWN` where a problem was reported."""
        misplaced = MISPLACED.get(type(node))
        if misplaced is not None:
            self.problems.error(*misplaced, node.span)
            return UNKNOWN
        return BINDERS[type(node)](self, node, place)

    def call(self, node: ast.Call, place: Place) -> Bound:
        """A call of a function; a part of the language may read some of its own way."""
        return call_binder.bind_call(self, node, place)


BINDERS: dict[type[ast.Expr], Callable[[ExpressionBinder, Any, Place], Bound]] = {
    ast.Constant: operator_binder.bind_constant,
    ast.Column: lambda binder, node, place: binder.names.column(node, place),
    ast.Unary: operator_binder.bind_unary,
    ast.Binary: operator_binder.bind_binary,
    ast.IsNull: operator_binder.bind_is_null,
    ast.Between: comparisons.bind_between,
    ast.In: comparisons.bind_in,
    ast.Like: operator_binder.bind_like,
    ast.Case: operator_binder.bind_case,
    ast.Cast: operator_binder.bind_cast,
    ast.ArrayLiteral: operator_binder.bind_array,
    ast.Quantified: operator_binder.bind_quantified,
    ast.Subquery: lambda binder, node, place: binder.bind_subquery(node, binder.scope),
    ast.Field: access_binder.bind_field,
    ast.Index: access_binder.bind_index,
    ast.Slice: access_binder.bind_slice,
    ast.Method: access_binder.bind_method,
    ast.Call: lambda binder, node, place: binder.call(node, place),
}
"""By the kind of an expression, what binds it."""
