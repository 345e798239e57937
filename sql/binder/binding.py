"""The side of the binder of expressions that binders of operators, calls and names use: the scope, and what
expressions of the statement have been found to hold."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

from sql import syntax as ast
from sql.binder.place import Place
from sql.binder.scope import UNKNOWN, Scope
from sql.binder.statement_kind import EPL, StatementKind
from sql.errors import Problems, Span
from sql.plan.bound import AggregateCall, AnalyticCall, Bound, HitCall, PrevCall
from sql.plan.clauses import Grouping, Numbering
from sql.types import Type

Elements = int | tuple[str, ...]
"""The source of events, or the columns of rows; plain values have none."""


class LambdaParameter(NamedTuple):
    """The name of a parameter of a lambda, and the source or columns of its values, where they are known."""

    name: str
    elements: Elements | None


BindSubquery = Callable[[ast.Subquery | ast.Quantified, Scope], Bound]
"""Binds a subquery, in the scope it stands in."""


def no_subquery(code: str, where: str, hint: str | None = None) -> BindSubquery:
    """Refuses subqueries `where` they cannot stand."""

    def refuse(node: ast.Subquery | ast.Quantified, scope: Scope) -> Bound:
        scope.site.problems.error(code, f"a subquery cannot stand {where}", node.span, hint)
        return UNKNOWN

    return refuse


class Binding(ABC):
    """Collects the aggregates, analytic functions and prevs of one statement."""

    def __init__(self, scope: Scope, bind_subquery: BindSubquery, kind: StatementKind = EPL) -> None:
        self.scope = scope
        self.site = scope.site
        self.problems: Problems = scope.site.problems
        self.bind_subquery = bind_subquery
        self.kind = kind
        self.aggregates: list[AggregateCall] = []
        self.analytics: list[AnalyticCall] = []
        self.prevs: list[PrevCall] = []
        self.hits: list[HitCall] = []
        self.numberings: list[Numbering] = []
        self.uses_meta = False
        self.grouping = Grouping()
        self.parameters: list[LambdaParameter] = []
        """The parameters of the lambdas around, the innermost last."""

    @abstractmethod
    def bind(self, node: ast.Expr, place: Place) -> Bound:
        """The bound form of an expression; `UNKNOWN` where a problem was reported."""

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
                also = "" if self.kind.epl else ", in eKuiper neither"
                hint = f'text is never taken for a number{also}; write cast(x, "float")'
            self.problems.error("B301", f"{what}, not {bound.type.value}", span, hint)

    def tags_shown(self, call: AggregateCall) -> tuple[str, ...] | None:
        """The tags of the matches that an aggregate returns as rows; None where it returns none."""
        return call.shows if isinstance(call.shows, tuple) else None
