"""Binding expressions: names to columns, calls to definitions, operands to types. Reports, never raises."""

from __future__ import annotations

from collections.abc import Callable

from sql import syntax as ast
from sql.aggregates import base as aggregates
from sql.binder import comparisons, index_binder
from sql.binder.calls import call_binder
from sql.binder.calls.call_arguments import check_literal
from sql.binder.calls.scalar_calls import cast
from sql.binder.contexts.partition_properties import below, bind_property, property_path
from sql.binder.relations import table_reads
from sql.binder.scope import UNKNOWN, Scope
from sql.errors import Problems, Span, did_you_mean
from sql.functions import registry as functions
from sql.plan.bound import (
    AggregateCall,
    AnalyticCall,
    Apply,
    Bound,
    Const,
    Enumerate,
    HitCall,
    LambdaRead,
    Op,
    PrevCall,
    Slot,
    TableRead,
)
from sql.plan.context_plan import WORD
from sql.plan.logical import Numbering
from sql.record import Record, field, replace
from sql.types import Type, type_named, type_names, type_of

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
        self._resolving: list[str] = []
        self._circles: set[frozenset[str]] = set()
        self.text = ""
        self._parameters: list[str] = []

    # --- entry ----------------------------------------------------------------------------------------------

    def bind(self, node: ast.Expr, place: Place) -> Bound:
        """The bound form of an expression; `UNKNOWN` where a problem was reported."""
        misplaced = MISPLACED.get(type(node))
        if misplaced is not None:
            self.problems.error(*misplaced, node.span)
            return UNKNOWN
        method: Callable[[ast.Expr, Place], Bound] = getattr(self, f"_{type(node).__name__.lower()}")
        return method(node, place)

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

    # --- names ----------------------------------------------------------------------------------------------

    def _constant(self, node: ast.Constant, place: Place) -> Bound:
        return Const(node.value, type=type_of(node.value), span=node.span)

    def _column(self, node: ast.Column, place: Place) -> Bound:
        if place.of_window:
            return self.bind(ast.Call("first", (node,), span=node.span), replace(place, of_window=False))
        if self._parameters and node.name == self._parameters[-1] and node.table is None:
            return LambdaRead(span=node.span)
        if self._parameters and node.table == self._parameters[-1]:
            return LambdaRead(node.name, span=node.span)
        builtin = place.builtins.get(node.table or node.name)
        if builtin is not None:
            base = Slot("builtin", node.table or node.name, type=builtin, span=node.span)
            if node.table is not None:
                self._read_everywhere(node.name)
                return Op("field", (base,), node.name, span=node.span)
            return base
        if node.table == WORD and self.scope.context is not None:
            return bind_property(self.scope, self.scope.context, (node.name,), node.span)
        if (node.table or node.name) in self.scope.places:
            slot, held = self.scope.places[node.table or node.name]
            return below(self.scope, slot, held, () if node.table is None else (node.name,), node.span)
        if self._is_alias(node, place):
            return self._alias(node, place)
        if node.table is not None and table_reads.is_table(self, node.table):
            return table_reads.column(
                self, table_reads.row(self, node.table, (), place, node.span), node.name, node.span
            )
        if node.table is not None and self.scope.source_named(node.table) is None:
            outer = ast.Column(node.table, span=Span(node.span.start, node.span.start + len(node.table)))
            if self._is_alias(outer, place):
                return self._field(ast.Field(outer, node.name, span=node.span), place)
        bound = self.scope.column(node.name, node.table, node.span)
        return self._bare(node, place) if bound is None else bound

    def _bare(self, node: ast.Column, place: Place) -> Bound:
        """A name that is no column: a function without parentheses, or an event by its alias."""
        if node.table is None and node.name.lower() in call_binder.BARE:
            return self._call(ast.Call(node.name.lower(), span=node.span, name_span=node.span), place)
        if node.table is None and (index := self.scope.aliased(node.name)) is not None:
            return self.scope.read_all(index, node.span)
        self.scope.unknown(node.table or node.name, node.span)
        return UNKNOWN

    def _read_everywhere(self, column: str) -> None:
        for reads in self.scope.reads:
            if reads is not None:
                reads.add(column)

    def item(self, node: ast.Expr, alias: str | None, place: Place) -> Bound:
        """The expression of a SELECT item: inside its own definition its alias means the column."""
        if alias is None:
            return self.bind(node, place)
        self._resolving.append(alias)
        bound = self.bind(node, replace(place, outside=alias))
        self._resolving.pop()
        return bound

    def _is_alias(self, node: ast.Column, place: Place) -> bool:
        if node.table is not None or not place.aliases or node.name not in self.scope.aliases:
            return False
        if node.name == place.outside or (self.scope.columns_first and self.scope.holders(node.name)):
            return False
        if place.name.startswith("the arguments of") and self._is_column_below_aggregate(node.name):
            return False
        if node.name not in self._resolving:
            return True
        circle = self._resolving[self._resolving.index(node.name) :]
        if frozenset(circle) not in self._circles:
            self._circles.add(frozenset(circle))
            names = " and ".join(f"'{name}'" for name in circle)
            self.problems.error(
                "B210",
                f"the aliases {names} define each other",
                node.span,
                "give one another name; qualify the column, s.x, where that is meant",
            )
        return False

    def _is_column_below_aggregate(self, name: str) -> bool:
        """True if the alias of an aggregate means the column that the aggregate reads.

        An aggregate of an aggregate has no meaning, so `avg(temp) AS temp … HAVING
        avg(temp) > 80` reads the column.
        """
        defined = self.scope.aliases[name].expr
        return _holds_aggregate(defined) and (
            bool(self.scope.holders(name))
            or any(isinstance(part, ast.Column) and part.name == name for part in defined.walk())
        )

    def _alias(self, node: ast.Column, place: Place) -> Bound:
        """An alias stands for its definition, which may use other aliases."""
        item = self.scope.aliases[node.name]
        return replace(self.item(item.expr, node.name, place), span=node.span)

    # --- operators ------------------------------------------------------------------------------------------

    def _unary(self, node: ast.Unary, place: Place) -> Bound:
        operand = self.bind(node.operand, place)
        if node.op == "not":
            self.expect(operand, Type.BOOLEAN, "NOT takes a boolean", node.operand.span)
            return Op("not", (operand,), type=Type.BOOLEAN, span=node.span)
        self.expect(operand, Type.NUMBER, f"'{node.op}' takes a number", node.operand.span)
        if node.op == "+":
            return operand
        if isinstance(operand, Const) and operand.value.__class__ in (int, float):
            return Const(-operand.value, type=operand.type, span=node.span)
        return Op("neg", (operand,), type=operand.type, span=node.span)

    def _binary(self, node: ast.Binary, place: Place) -> Bound:
        args = (self.bind(node.left, place), self.bind(node.right, place))
        sides = zip(args, (node.left, node.right), strict=True)
        if node.op in ("and", "or"):
            for bound, side in sides:
                self.expect(bound, Type.BOOLEAN, f"{node.op.upper()} takes booleans", side.span)
            return Op(node.op, args, type=Type.BOOLEAN, span=node.span)
        if node.op in comparisons.SIGNS:
            return comparisons.bind_comparison(self, node, args)
        wanted = Type.STRING if node.op == "||" else Type.NUMBER
        for bound, side in sides:
            self.expect(
                bound, wanted, f"'{node.op}' takes {'texts' if node.op == '||' else 'numbers'}", side.span
            )
        return Op(node.op, args, type=_arithmetic_type(node.op, args), span=node.span)

    def _isnull(self, node: ast.IsNull, place: Place) -> Bound:
        test = Op("isnull", (self.bind(node.operand, place),), type=Type.BOOLEAN, span=node.span)
        return Op("not", (test,), type=Type.BOOLEAN, span=node.span) if node.negated else test

    def _between(self, node: ast.Between, place: Place) -> Bound:
        return comparisons.bind_between(self, node, place)

    def _in(self, node: ast.In, place: Place) -> Bound:
        return comparisons.bind_in(self, node, place)

    def _like(self, node: ast.Like, place: Place) -> Bound:
        args = (self.bind(node.operand, place), self.bind(node.pattern, place))
        for bound, side in zip(args, (node.operand, node.pattern), strict=True):
            self.expect(bound, Type.STRING, "LIKE takes texts", side.span)
        if node.regexp:
            matches = functions.lookup("regexp_matches")
            assert matches is not None
            check_literal(self, matches.parameters[1], args[1], node.pattern.span)
            test: Bound = Apply(matches, args, type=Type.BOOLEAN, span=node.span)
            return Op("not", (test,), type=Type.BOOLEAN, span=node.span) if node.negated else test
        return comparisons.negatable(
            Op("like", args, node.escape, type=Type.BOOLEAN, span=node.span), node.negated
        )

    def _case(self, node: ast.Case, place: Place) -> Bound:
        args: list[Bound] = []
        subject = None if node.operand is None else self.bind(node.operand, place)
        for when in node.whens:
            test = self.bind(when.condition, place)
            if subject is not None:
                test = comparisons.bind_equality(self, subject, test, when.condition.span)
            else:
                self.expect(test, Type.BOOLEAN, "a searched WHEN takes a condition", when.condition.span)
            args += [test, self.bind(when.value, place)]
        args.append(Const(None, type=Type.NULL) if node.default is None else self.bind(node.default, place))
        types = {value.type for value in (*args[1::2], args[-1])} - {Type.NULL}
        return Op("case", tuple(args), type=types.pop() if len(types) == 1 else Type.ANY, span=node.span)

    def _cast(self, node: ast.Cast, place: Place) -> Bound:
        if type_named(node.type_name) is None:
            hint = did_you_mean(node.type_name, type_names())
            self.problems.error("B303", f"unknown type '{node.type_name}'", node.span, hint)
            return UNKNOWN
        return cast(self, self.bind(node.operand, place), node.type_name, node.span)

    # --- access ---------------------------------------------------------------------------------------------

    def _field(self, node: ast.Field, place: Place) -> Bound:
        path = None if self.scope.context is None else property_path(node)
        if path is not None and self.scope.context is not None:
            return bind_property(self.scope, self.scope.context, path, node.span)
        base = self.bind(node.base, place)
        if isinstance(base, TableRead) and base.column is None:
            return table_reads.column(self, base, node.name, node.span)
        return self.scope.field(base, node.name, node.span)

    def _index(self, node: ast.Index, place: Place) -> Bound:
        return index_binder.bind_index(self, node, place)

    def _slice(self, node: ast.Slice, place: Place) -> Bound:
        return index_binder.bind_slice(self, node, place)

    def _arrayliteral(self, node: ast.ArrayLiteral, place: Place) -> Bound:
        items = tuple(self.bind(item, place) for item in node.items)
        return Op("array", items, type=Type.ARRAY, span=node.span)

    def _method(self, node: ast.Method, place: Place) -> Bound:
        if (
            isinstance(node.base, ast.Column)
            and node.name == "keys"
            and table_reads.is_table(self, node.base.name)
        ):
            return table_reads.keys(self, node.base.name, node.span)
        if node.name in table_reads.LIST_METHODS and not node.args:
            return table_reads.method(self, node, self.bind(node.base, place))
        if (
            node.name.lower() != "selectfrom"
            or len(node.args) != 1
            or not isinstance(node.args[0], ast.Lambda)
        ):
            self.problems.error(
                "B305", f"unknown method '{node.name}'", node.span, "lists have selectFrom(x => …)"
            )
            return UNKNOWN
        body = node.args[0]
        base = self.bind(node.base, place)
        self._parameters.append(body.parameters[0])
        bound = self.bind(body.body, place)
        self._parameters.pop()
        return Enumerate(base, "selectfrom", bound, type=Type.ARRAY, span=node.span)

    def _subquery(self, node: ast.Subquery, place: Place) -> Bound:
        return self.bind_subquery(node, self.scope)

    def _quantified(self, node: ast.Quantified, place: Place) -> Bound:
        operand = self.bind(node.operand, place)
        values = self.bind_subquery(node, self.scope)
        return Op(
            "quantified", (operand, values), (node.op, node.quantifier), type=Type.BOOLEAN, span=node.span
        )

    def _call(self, node: ast.Call, place: Place) -> Bound:
        return call_binder.bind_call(self, node, place)


def _holds_aggregate(node: ast.Expr) -> bool:
    found = (part for part in node.walk() if isinstance(part, ast.Call) and aggregates.lookup(part.name))
    return any(part.name not in call_binder.SCALAR_FORMS or len(part.args) < 2 for part in found)


def _arithmetic_type(op: str, args: tuple[Bound, ...]) -> Type:
    types = {arg.type for arg in args}
    if op == "||":
        return Type.STRING
    if op == "/":
        return Type.FLOAT
    if types == {Type.INTEGER}:
        return Type.INTEGER
    if Type.FLOAT in types and Type.ANY not in types:
        return Type.FLOAT
    return Type.NUMBER
