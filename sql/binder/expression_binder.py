"""Binding expressions: names to columns, calls to definitions, operands to types. Reports, never raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sql import syntax as ast
from sql.binder import access_binder, comparisons, operator_binder
from sql.binder.calls import call_binder
from sql.binder.name_binder import NameBinder
from sql.binder.scope import UNKNOWN, Scope
from sql.errors import Problems, Span
from sql.plan.bound import (
    AggregateCall,
    AnalyticCall,
    Bound,
    HitCall,
    PrevCall,
)
from sql.plan.clauses import Numbering
from sql.record import Record, field
from sql.types import Type

BindSubquery = Callable[[ast.Subquery | ast.Quantified, Scope], Bound]
"""Binds a subquery, in the scope it stands in."""

MISPLACED: dict[type[ast.Expr], tuple[str, str]] = {
    ast.Star: ("B202", "'*' stands only in SELECT and in functions that take whole rows"),
    ast.Ordering: ("B304", "ASC and DESC stand only in sort criteria"),
    ast.Lambda: ("B305", "'=>' stands only inside an enumeration method"),
    ast.PeriodLiteral: ("B306", "a time period stands only as a parameter of windows and output limits"),
}
"""What is an expression only at the places that expect it: the code and the message everywhere else."""


class Place(Record):
    """The place of an expression, which decides what it may contain."""

    name: str
    aggregates: bool = False
    analytics: bool = True
    prevs: bool = False
    windows: bool = False
    aliases: bool = True
    of_window: bool = False  # a column outside aggregates is that of the window's first event
    builtins: dict[str, Type] = field(default_factory=dict)
    outside: str | None = None  # the alias being defined: inside its definition the name means the column


class ExpressionBinder:
    """Binds expressions of one statement; collects the aggregates, analytic functions and prevs it meets."""

    def __init__(self, scope: Scope, bind_subquery: BindSubquery) -> None:
        self.scope = scope
        self.problems: Problems = scope.problems
        self.aggregates: list[AggregateCall] = []
        self.analytics: list[AnalyticCall] = []
        self.prevs: list[PrevCall] = []
        self.hits: list[HitCall] = []
        self.numberings: list[Numbering] = []
        self.sampled = False
        """True if a window in GROUP BY shows rows, several at a time."""
        self.has_window = False
        """True if the statement has a window in GROUP BY whose bounds can be read."""
        self.bind_subquery = bind_subquery
        self.aggregate_names: dict[str, str] = {}
        """Aggregates by name in the statement's language: eKuiper's stddev is the population's."""
        self.epl = False
        self.uses_meta = False
        self.text = ""
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

    def condition(self, node: ast.Expr | None, place: Place) -> Bound | None:
        """An expression that must be a boolean."""
        if node is None:
            return None
        bound = self.bind(node, place)
        self.expect(bound, Type.BOOLEAN, f"{place.name} must be a condition", node.span)
        return bound

    def expect(self, bound: Bound, wanted: Type, what: str, span: Span, hint: str | None = None) -> None:
        """Report an expression whose known type cannot be `wanted`."""
        if not wanted.accepts(bound.type):
            if hint is None and wanted.is_numeric and bound.type is Type.STRING:
                hint = 'text is never taken for a number, in eKuiper neither; write cast(x, "float")'
            self.problems.error("B301", f"{what}, not {bound.type.value}", span, hint)

    # --- access ---------------------------------------------------------------------------------------------


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
