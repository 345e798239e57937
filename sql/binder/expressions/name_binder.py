"""Binding names: columns, aliases of the select list, built-in properties, parameters of lambdas."""

from __future__ import annotations

from sql import syntax as ast
from sql.aggregates import base as aggregates
from sql.binder.binding import Binding
from sql.binder.calls import call_binder
from sql.binder.expressions import event_fields, table_reads
from sql.binder.expressions.bare_names import column_of_a_tag
from sql.binder.expressions.partition_properties import below, bind_property
from sql.binder.place import Place
from sql.binder.scope import UNKNOWN
from sql.errors import Span
from sql.plan.bound import Bound, LambdaRead, Op, Slot
from sql.plan.context_plan import WORD
from sql.record import replace


class NameBinder:
    """Finds what a name means where it stands."""

    def __init__(self, binder: Binding) -> None:
        self.binder = binder
        self.scope = binder.scope
        self.site = binder.site
        self._resolving: list[str] = []
        self._circles: set[frozenset[str]] = set()

    def column(self, node: ast.Column, place: Place) -> Bound:
        """A name, perhaps with a qualifier."""
        if place.of_window:
            return self.binder.bind(
                ast.Call("first", (node,), span=node.span), replace(place, of_window=False)
            )
        for depth, parameter in enumerate(reversed(self.binder.parameters)):
            if (node.table or node.name) == parameter.name:
                if node.table is not None:
                    event_fields.check_name(self.binder, parameter.elements, node.name, node.span)
                return LambdaRead(node.name if node.table else None, depth, span=node.span)
        builtin = place.builtins.get(node.table or node.name)
        if builtin is not None:
            base = Slot("builtin", node.table or node.name, type=builtin, span=node.span)
            if node.table is not None:
                self._read_everywhere(node.name)
                return Op("field", (base,), node.name, span=node.span)
            return base
        if node.table == WORD and self.site.context is not None:
            return bind_property(self.site, self.site.context, (node.name,), node.span)
        if (node.table or node.name) in self.site.places:
            slot, held = self.site.places[node.table or node.name]
            return below(self.site, slot, held, () if node.table is None else (node.name,), node.span)
        if self._is_alias(node, place):
            return self._alias(node, place)
        if node.table is not None and table_reads.is_table(self.binder, node.table):
            return table_reads.column(
                self.binder,
                table_reads.row(self.binder, node.table, (), place, node.span),
                node.name,
                node.span,
            )
        if node.table is not None and self.scope.source_named(node.table) is None:
            outer = ast.Column(node.table, span=Span(node.span.start, node.span.start + len(node.table)))
            if self._is_alias(outer, place):
                return self.binder.bind(ast.Field(outer, node.name, span=node.span), place)
        return self._in_sources(node, place)

    def _in_sources(self, node: ast.Column, place: Place) -> Bound:
        """A column of a source, a field of one, or what a name without a column means."""
        bound = self.scope.column(node.name, node.table, place, node.span)
        if isinstance(bound, Op) and bound.name == "field":
            event_fields.check_field(self.binder, bound.args[0], node.name, node.span)
        return self._bare(node, place) if bound is None else bound

    def _bare(self, node: ast.Column, place: Place) -> Bound:
        """A name that is no column: a function without parentheses, or an event by its alias."""
        if node.table is None and node.name.lower() in call_binder.BARE:
            return self.binder.bind(ast.Call(node.name.lower(), span=node.span, name_span=node.span), place)
        if node.table is None and (index := self.scope.aliased(node.name)) is not None:
            return self.scope.read_all(index, node.span)
        if node.table is None and (column := column_of_a_tag(self.binder, node)) is not None:
            return column
        self.scope.unknown(node.table or node.name, node.span, builtins=place.builtins)
        return UNKNOWN

    def _read_everywhere(self, column: str) -> None:
        for reads in self.scope.reads:
            if reads is not None:
                reads.add(column)

    def item(self, node: ast.Expr, alias: str | None, place: Place) -> Bound:
        """The expression of a SELECT item: inside its own definition its alias means the column."""
        if isinstance(node, ast.Star):
            return self._whole(node)
        if alias is None:
            return self.binder.bind(node, place)
        self._resolving.append(alias)
        bound = self.binder.bind(node, replace(place, outside=alias))
        self._resolving.pop()
        return bound

    def _whole(self, star: ast.Star) -> Bound:
        """The event of `s.* as name`."""
        index = self.scope.source_named(star.table or "")
        if index is None:
            self.scope.unknown_source(star.table or "", star.span)
            return UNKNOWN
        return self.scope.read_all(index, star.span)

    def _is_alias(self, node: ast.Column, place: Place) -> bool:
        if node.table is not None or not place.aliases or node.name not in self.scope.aliases:
            return False
        if node.name == place.outside:
            return False
        in_order_by = place.name == "ORDER BY" and not self._resolving
        if self.binder.kind.epl and not in_order_by and self.scope.holders(node.name):
            return False
        sees_events = place.name == "WHERE" or place.name.startswith("the arguments of")
        if sees_events and self._is_column_below_aggregate(node.name):
            return False
        if node.name not in self._resolving:
            return True
        circle = self._resolving[self._resolving.index(node.name) :]
        if frozenset(circle) not in self._circles:
            self._circles.add(frozenset(circle))
            names = " and ".join(f"'{name}'" for name in circle)
            message = f"the aliases {names} define each other"
            hint = "give one another name; qualify the column, s.x, where that is meant"
            self.binder.problems.error("B210", message, node.span, hint)
        return False

    def _is_column_below_aggregate(self, name: str) -> bool:
        """True if the alias of an aggregate means the column that the aggregate reads.

        An aggregate in WHERE or of an aggregate has no meaning, so `avg(temp) AS temp … WHERE temp > 20
        … HAVING avg(temp) > 80` reads the column in both.
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


def _holds_aggregate(node: ast.Expr) -> bool:
    found = (part for part in node.walk() if isinstance(part, ast.Call) and aggregates.lookup(part.name))
    return any(part.name not in call_binder.SCALAR_FORMS or len(part.args) < 2 for part in found)
