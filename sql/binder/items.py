"""The items of SELECT: their names, what `*` stands for, and the kind of rows they make."""

from __future__ import annotations

from collections.abc import Iterable

from sql import syntax as ast
from sql.binder import kuiper
from sql.binder.binding import Binding
from sql.binder.expressions.event_fields import columns_held
from sql.binder.expressions.expression_binder import ExpressionBinder
from sql.binder.expressions.partition_properties import property_path
from sql.binder.place import Place
from sql.binder.scope import META
from sql.binder.spread_binder import SpreadBinder
from sql.binder.stars import check_excluded
from sql.plan.bound import AggregateCall, Bound, Read, event_read
from sql.plan.clauses import ItemPlan
from sql.plan.logical import RowKind
from sql.types import Type

SELECT = Place("SELECT", aggregates=True, prevs=True, windows=True)


class ItemBinder:
    """Binds the items of one SELECT. `send_meta`: each row carries the metadata of its message."""

    def __init__(
        self, select: ast.Select, binder: ExpressionBinder, place: Place = SELECT, *, send_meta: bool = False
    ) -> None:
        self.select = select
        self.binder = binder
        self.place = place
        self.scope = binder.scope
        self.problems = binder.problems
        self.send_meta = send_meta

    def bind(self, spreads: SpreadBinder) -> tuple[ItemPlan, ...]:
        """The items; those that make rows or columns are collected in `spreads`."""
        out: list[ItemPlan] = []
        taken: dict[str, ast.SelectItem] = {}
        target = self.select.insert_into
        named_anew = target is not None and bool(target.columns)
        for item in self.select.items:
            if isinstance(item.expr, ast.Star) and item.alias is None:
                shown = [name for name, other in taken.items() if not other.invisible]
                out += self._star(item.expr, [] if self.binder.kind.epl else shown)
                continue
            if spreads.handles(item):
                out += spreads.bind(item)
                continue
            bound = self.binder.names.item(item.expr, item.alias, self.place)
            is_whole = isinstance(bound, Read) and bound.column is None
            if is_whole and item.alias is None and self.select.lots:
                out.append(ItemPlan(None, bound))
                continue
            name = item.alias or self._unnamed(item)
            twin = None if named_anew else taken.get(name)
            if twin is not None and self._is_call(item) and self._is_call(twin):
                self._note_lost(name, twin)
                out = [known for known in out if known.name != name]
            elif twin is not None:
                hint = "" if self.binder.kind.epl else "eKuiper shows only one of them; "
                hint += "give one an alias with AS"
                self.problems.error("B206", f"two columns are called '{name}'", item.span, hint)
            taken[name] = item
            out.append(ItemPlan(name, bound, item.invisible))
        if self.send_meta:
            out.append(self._meta_item())
        return tuple(out)

    def _is_call(self, item: ast.SelectItem) -> bool:
        """True for a column of an eKuiper rule that takes the name of its function,
        because it has no alias."""
        return item.alias is None and isinstance(item.expr, ast.Call) and not self.binder.kind.epl

    def _note_lost(self, name: str, item: ast.SelectItem) -> None:
        """Two calls of one function without alias make one column: as in eKuiper that of the last call."""
        message = f"a later column is called '{name}' too, and takes the place of this one"
        self.problems.warn("B717", message, item.span, "give one an alias with AS")

    def _meta_item(self) -> ItemPlan:
        """The column `__meta` of sendMetaToSink: rows that stand for one message can say which."""
        select = self.select
        keeps = any(isinstance(source, ast.StreamSource) and source.windows for source in select.sources)
        by_event = self.binder.kind.mode == "delta" and not keeps and not select.joins
        if not by_event or select.group_by or self.binder.aggregates:
            message = "sendMetaToSink has no effect with windows, joins and aggregates"
            hint = "a row stands for many messages there; use collect(meta(topic))"
            self.problems.error("B609", message, select.span, hint)
        self.binder.uses_meta = True
        return ItemPlan("__meta", self.scope.meta(select.span))

    def _unnamed(self, item: ast.SelectItem) -> str:
        """The name of a column without alias: its text in EPL, as of all properties of a context; the field's
        or function's name in eKuiper."""
        expr = item.expr
        if self.scope.site.context is not None and property_path(expr) is not None:
            return item.text
        if isinstance(expr, ast.Column):
            alone = self.scope.own == 1 and self.scope.sources[0].tag is None
            return expr.name if not self.binder.kind.epl or alone else item.text
        if self.binder.kind.epl:
            return item.text
        if isinstance(expr, ast.Field | ast.Call):
            return expr.name
        return item.text

    def _star(self, star: ast.Star, named_before: list[str]) -> list[ItemPlan]:
        """The columns of `*`. One that an item before it has named keeps that item's value."""
        if star.table is not None:
            index = self.scope.source_named(star.table)
            if index is None:
                self.scope.unknown_source(star.table, star.span)
                return []
            chosen = [index]
        else:
            chosen = list(range(self.scope.own))
        check_excluded(self.binder, star)
        replaced = {item.alias for item in star.replaced if item.alias}
        carriers = [source.carrier for source in self.scope.sources if source.carrier is not None]
        others = replaced.union(named_before).difference(star.excluded)
        excluded = (*star.excluded, *sorted(others), *carriers)
        matches = any(self.scope.sources[i].tag is not None for i in chosen)
        named = star.table is None and (matches or (len(chosen) > 1 and self.binder.kind.epl))
        if matches:
            chosen.sort()
        out = [
            ItemPlan(
                self.scope.sources[i].alias if named else None,
                self.scope.read_all(i, star.span),
                False,
                excluded,
            )
            for i in (chosen if self.binder.kind.epl or matches else reversed(chosen))
        ]
        if not self.binder.kind.epl and not matches:
            out += kuiper.shared_columns(self.scope, chosen, excluded, star.span)
        for item in star.replaced:
            out.append(
                ItemPlan(item.alias or item.text, self.binder.names.item(item.expr, item.alias, self.place))
            )
        return out

    def _columns_of(self, row: Read) -> dict[str, Type] | None:
        """The columns of a whole event, or of the row that one carries."""
        if row.column is None:
            return self.scope.sources[row.source].columns
        return next(source.columns for source in self.scope.sources if source.carrier == row.column)

    def output_columns(self, items: tuple[ItemPlan, ...]) -> dict[str, Type] | None:
        """The columns of the rows, as a stream that they are inserted into has them; None
        where messages decide."""
        out: dict[str, Type] = {}
        for item in items:
            if item.name is not None:
                out[item.name] = item.value.type
            elif isinstance(item.value, Read) and item.value.type is not Type.ARRAY:
                columns = self._columns_of(item.value)
                if columns is None:
                    return None
                out |= {
                    name: kind for name, kind in columns.items() if name not in item.excluded and name != META
                }
            else:
                return None
        return out


def output_fields(binder: Binding, items: Iterable[ItemPlan]) -> dict[str, tuple[str, ...]]:
    """The columns of the events that an item holds, one or a list, where they are known."""
    held = {item.name: columns_held(binder, item.value) for item in items if item.name is not None}
    return {name: columns for name, columns in held.items() if columns is not None}


def row_kind(
    items: tuple[ItemPlan, ...],
    group_by: tuple[Bound, ...],
    aggregates: list[AggregateCall],
    others: Iterable[Bound] = (),
    *,
    own: int | None = None,
) -> RowKind:
    """Which of the kinds of statements of epl.md 5.2 this is. `others`: expressions of other clauses that are
    evaluated for each row. `own`: the number of a subquery's own sources; what is read around it is one for
    all its rows."""
    if not (aggregates or group_by):
        return "plain"
    own_keys = [key for call in aggregates for key in call.group_by or ()]
    is_of_event = any(
        event_read(value, group_by, own) is not None
        for value in (*(item.value for item in items), *others, *own_keys)
    )
    if group_by:
        return "group_event" if is_of_event else "group"
    return "event" if is_of_event else "aggregate"
