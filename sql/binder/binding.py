"""The side of the binder of expressions that binders of operators, calls and names use: the scope, and what
expressions of the statement have been found to hold."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from sql import syntax as ast
from sql.binder.scope import Scope
from sql.errors import Problems, Span
from sql.plan.bound import AggregateCall, AnalyticCall, Bound, HitCall, PrevCall
from sql.plan.clauses import Numbering
from sql.record import Record, field
from sql.types import Type

BindSubquery = Callable[[ast.Subquery | ast.Quantified, Scope], Bound]
"""Binds a subquery, in the scope it stands in."""


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


class Binding(ABC):
    """Collects the aggregates, analytic functions and prevs of one statement."""

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
        self.parameters: list[str] = []
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
                hint = 'text is never taken for a number, in eKuiper neither; write cast(x, "float")'
            self.problems.error("B301", f"{what}, not {bound.type.value}", span, hint)
