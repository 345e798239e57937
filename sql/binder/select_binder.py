"""The binder: a parsed SELECT and a catalog become a plan, or all problems at once."""

from __future__ import annotations

from collections.abc import Iterable

from sql import syntax as ast
from sql.binder import kuiper
from sql.binder.annotations import name_of, priority_of
from sql.binder.clause_checks import check_clauses, check_plan
from sql.binder.contexts.statement_checks import (
    check_statement,
    check_without_source,
    context_named,
    note_ends,
)
from sql.binder.effects import check_effects
from sql.binder.expressions.event_fields import row_columns
from sql.binder.expressions.expression_binder import ExpressionBinder
from sql.binder.expressions.grouping import GroupBinder, with_sets
from sql.binder.expressions.partition_properties import keys_fixed
from sql.binder.items import SELECT, ItemBinder, output_fields, row_kind
from sql.binder.output_limits import OutputLimitBinder
from sql.binder.place import Place
from sql.binder.reads import Reads, note_reads
from sql.binder.relations import lookups, relation_binder
from sql.binder.relations.table_joins import without_missing_aggregates
from sql.binder.scope import Scope, Site
from sql.binder.sources.source_binder import SourceBinder
from sql.binder.spread_binder import SpreadBinder
from sql.binder.statement_kind import kind_of
from sql.binder.windows.derived_window import folded
from sql.binder.windows.group_by import bind_group_window
from sql.errors import Span
from sql.plan.arrival import with_filter_for_prior
from sql.plan.bound import Bound, Const, Slot
from sql.plan.clauses import EACH_EVENT, Criterion, GroupWindowPlan, ItemPlan, JoinPlan, SourcePlan
from sql.plan.context_plan import ContextPlan
from sql.plan.logical import Plan, SubqueryKind, SubqueryPlan
from sql.plan.lookup_plan import LookupPlan
from sql.record import replace
from sql.types import Type

HAVING = Place("HAVING", aggregates=True, prevs=True, windows=True)
ORDER_BY = Place("ORDER BY", aggregates=True, windows=True)
WHERE = Place("WHERE", prevs=True)

TYPES_OF = {
    "exists": Type.BOOLEAN,
    "row": Type.OBJECT,
    "rows": Type.ARRAY,
    "values": Type.ARRAY,
    "list": Type.ARRAY,
}
"""The type of a subquery by its kind; a scalar one has that of its item."""


def bind(select: ast.Select, site: Site) -> Plan:
    """The plan of a SELECT. Raises SqlError with every problem found."""
    plan = SelectBinder(select, site).bind()
    site.raise_if_any()
    return folded(replace(plan, warnings=tuple(site.problems.found)), site.catalog)


class SelectBinder:
    """Binds one SELECT; subqueries are bound by binders of their own at the same site."""

    def __init__(self, select: ast.Select, site: Site, *, is_trigger: bool = False) -> None:
        """`is_trigger`: it is the trigger of a statement that acts, which speaks EPL."""
        select = relation_binder.with_criteria(select, site.catalog) if select.into_table else select
        self.select, self.lookup_joins = lookups.split(select, site.catalog)
        self.site = site
        if select.context is not None:
            self.site = _in_partitions(site, select.context, select.in_context)
        self.problems = site.problems
        self.subqueries: list[SubqueryPlan] = []
        self.carried: list[LookupPlan] = []
        """What the subqueries over tables of stores ask for."""
        self.sources = SourceBinder(
            self.select, self.lookup_joins, self.site, self._subquery, is_trigger=is_trigger
        )
        kind = kind_of(self.select, self.sources.streams, self.site)
        self.kind = replace(kind, epl=True) if is_trigger else kind
        self.scope = self.sources.scope
        self.binder = ExpressionBinder(self.scope, self._subquery, self.kind)

    # --- the statement --------------------------------------------------------------------------------------

    def bind(self) -> Plan:
        """The plan; problems are reported, never raised."""
        select, binder = self.select, self.binder
        sources = self._sources()
        joins = tuple(self._join(join) for join in select.joins)
        window = self._window()
        where = self._where(sources)
        binder.grouping = GroupBinder(binder).bind(select.group_by)
        group_by = binder.grouping.keys
        spreads = SpreadBinder(binder, SELECT)
        items_of = ItemBinder(select, binder, send_meta=self.site.options.send_meta)
        bound = self._renamed(items_of.bind(spreads))
        items = tuple(replace(item, value=self._with_fixed_keys(item.value)) for item in bound)
        if select.into_table is not None:
            items = relation_binder.with_own_aggregates(binder, items)
        having = self._having(is_plain=not (group_by or binder.aggregates or binder.hits))
        order_by = tuple(map(self._criterion, select.order_by))
        output = None if select.output is None else OutputLimitBinder(binder).bind(select.output)
        into_table = relation_binder.bind_into(binder, select, group_by, items)
        lookup_plans = (*lookups.bind_joins(binder, self.lookup_joins, joins), *self.carried)
        plan = Plan(
            text=self.site.text,
            mode=self.kind.mode,
            sources=sources,
            items=lookups.without_answers(items, lookup_plans),
            options=self.site.options,
            joins=joins,
            lookups=lookup_plans,
            window=window,
            where=where,
            group_by=group_by,
            spreads=tuple(spreads.found),
            row_kind=row_kind(
                items,
                group_by,
                binder.aggregates,
                self._beside_items(having, order_by, group_by),
                own=self.scope.own,
            ),
            having=having,
            order_by=order_by,
            limit=self._row_count(select.limit, "LIMIT"),
            offset=self._row_count(select.offset, "OFFSET"),
            output=output,
            distinct=select.distinct,
            output_columns=None if spreads.found else items_of.output_columns(items),
            output_fields={} if select.insert_into is None else output_fields(binder, items),
            into_table=into_table,
        )
        plan = with_sets(self.problems, kuiper.with_own_times(self._with_facts(plan)), binder.grouping)
        plan = with_filter_for_prior(without_missing_aggregates(self._checked(plan), self.site.catalog))
        if plan.context is None:
            return plan
        # Partitions keep and compare whole events, so all streams are read whole.
        return replace(plan, reads=dict.fromkeys((*plan.reads, *plan.context.reads)))

    def _sources(self) -> tuple[SourcePlan, ...]:
        """Check and bind FROM; the clauses after it see its columns and the aliases of SELECT."""
        check_clauses(self.problems, self.select, self.sources.streams)
        lookups.check(self.problems, self.lookup_joins, self._instead_of_waiting())
        relation_binder.check_sources(self.problems, self.select.sources, self.sources.streams)
        sources = self.sources.plans(self.kind.mode)
        self.scope.aliases = {item.alias: item for item in self.select.items if item.alias}
        return sources

    def _beside_items(
        self, having: Bound | None, order_by: tuple[Criterion, ...], group_by: tuple[Bound, ...]
    ) -> list[Bound]:
        """The expressions beside SELECT that each row evaluates: HAVING, and of groups ORDER BY."""
        if self.kind.mode != "delta" or self.site.outer is not None:
            return []
        keys = [each.value for each in order_by] if group_by else []
        return keys if having is None else [having, *keys]

    def _criterion(self, order: ast.Ordering) -> Criterion:
        value = self._with_fixed_keys(self.binder.bind(order.operand, ORDER_BY))
        return Criterion(value, order.descending, order.nulls_first)

    def _with_facts(self, plan: Plan) -> Plan:
        """The plan with what its clauses have in common: the calls found in them, what the statement reads,
        and what it says of itself."""
        select, binder = self.select, self.binder
        selector, posts = relation_binder.sides(select)
        timestamps = self.sources.timestamps()
        timestamp, _ = next(iter(timestamps.values()), (None, None))
        return replace(
            plan,
            name=name_of(select),
            analytics=tuple(binder.analytics),
            aggregates=tuple(binder.aggregates),
            prevs=tuple(binder.prevs),
            hits=tuple(binder.hits),
            numberings=tuple(binder.numberings),
            subqueries=tuple(self.subqueries),
            selector=selector,
            insert=select.insert_into,
            posts=posts,
            timestamp=timestamp,
            timestamps=timestamps,
            reads=self._reads((name, column) for name, (column, _) in timestamps.items()),
            uses_meta=binder.uses_meta,
            context=self.site.context if select.context is not None else None,
            priority=priority_of(select),
            relations=self._relations(),
        )

    def _checked(self, plan: Plan) -> Plan:
        """Check the whole of a plan whose parts are right."""
        if self.problems.errors:
            return plan
        if plan.context is not None:
            self._check_in_context(plan, plan.context)
        if self.site.outer is None:
            lookups.refuse_as_sources(self.problems, self.select.sources, self.sources.streams)
        relation_binder.check_target(self.select, plan, self.scope)
        check_plan(self.problems, self.select, plan, is_epl=self.kind.epl)
        check_effects(self.problems, self.select, plan, is_epl=self.kind.epl)
        note_ends(self.problems, plan)
        return plan

    def _instead_of_waiting(self) -> str | None:
        """The hint where the statement's events cannot wait for the rows of a store."""
        return lookups.instead_of_waiting(self.select, self.site)

    def _having(self, *, is_plain: bool) -> Bound | None:
        """HAVING; where nothing is grouped, `is_plain`, it is about a window as a whole."""
        place = replace(HAVING, of_window=is_plain and self.kind.mode == "sample")
        having = self.binder.condition(self.select.having, place)
        return None if having is None else self._with_fixed_keys(having)

    def _where(self, sources: tuple[SourcePlan, ...]) -> Bound | None:
        """Bind WHERE; in a statement that keeps no events it decides as each event arrives."""
        keeps_events = len(sources) != 1 or sources[0].keeps or self.site.outer is not None
        at_arrival = self.kind.mode == "delta" and not keeps_events
        return self.binder.condition(self.select.where, replace(WHERE, at_arrival=at_arrival))

    def _with_fixed_keys(self, bound: Bound) -> Bound:
        """Beside aggregates a key of the context is a property of the partition, no column of some event;
        unless it is a key of grouping sets, or of a pattern, whose tags may be NULL."""
        context, is_bare = self.site.context, self.binder.aggregates and not self.binder.grouping.sets
        if context is None or self.kind.mode != "delta" or not is_bare or self.sources.matches_alone:
            return bound
        return keys_fixed(bound, context, [stream.name for stream in self.sources.streams])

    def _check_in_context(self, plan: Plan, context: ContextPlan) -> None:
        check_statement(self.problems, context, set(plan.reads), self.select.span, self.site.catalog)
        if self.select.source is None:
            check_without_source(self.problems, self.select, plan)
        for source, stream in zip(self.select.sources, self.sources.streams, strict=True):
            if stream.kind in ("scan", "lookup"):
                self.problems.error(
                    "B822",
                    f"the rows of '{stream.name}' belong to no partition: "
                    "a statement in a context joins no such table",
                    source.span,
                    "fill a table with a primary key from it (INSERT INTO), and join that",
                )

    def _window(self) -> GroupWindowPlan | None:
        """The window in GROUP BY; without one a stream that is joined with tables is
        processed event by event."""
        if self.kind.mode != "sample":
            return None
        if not self.select.windows:
            return EACH_EVENT
        window = bind_group_window(self.binder, self.select.windows[0])
        if self.select.joins:
            kuiper.check_join_window(self.problems, window)
        return window

    def _join(self, join: ast.Join) -> JoinPlan:
        return JoinPlan(join.kind, self.binder.condition(join.on, Place("ON", analytics=False)))

    # --- the rest -------------------------------------------------------------------------------------------

    def _row_count(self, node: ast.Expr | None, name: str) -> Bound | None:
        if node is None:
            return None
        bound = self.binder.bind(node, Place(name, aliases=False, analytics=False))
        if bound.reads_events() or (isinstance(bound, Const) and bound.value.__class__ is not int):
            self.problems.error("B304", f"{name} takes a whole number", node.span)
        if (
            isinstance(bound, Const)
            and not self.kind.epl
            and isinstance(bound.value, int)
            and bound.value < 0
        ):
            self.problems.error("B304", f"{name} takes a whole number of at least 0", node.span)
        return bound

    def _reads(self, timestamps: Iterable[tuple[str, str]]) -> Reads:
        out = self.sources.reads(timestamps)
        for part in self.subqueries:
            for name, columns in part.plan.reads.items():
                note_reads(out, name, columns)
        # Rows of relations are objects, and those of their streams with them.
        return dict.fromkeys(out) if self._relations() else out

    def _renamed(self, items: tuple[ItemPlan, ...]) -> tuple[ItemPlan, ...]:
        """The items under the names of `insert into S(a, b)`."""
        target = self.select.insert_into
        if target is None or not target.columns:
            return items
        shown = [item for item in items if not item.invisible]
        if len(shown) != len(target.columns) or any(item.name is None for item in shown):
            message = f"{len(target.columns)} columns are named and {len(shown)} are selected"
            self.problems.error("B542", message, target.span, "name as many as are selected, and select no *")
            return items
        names = dict(zip(map(id, shown), target.columns, strict=True))
        return tuple(replace(item, name=names.get(id(item), item.name)) for item in items)

    def _relations(self) -> frozenset[str]:
        own = {stream.name for stream in self.sources.streams if stream.is_relation} | self.scope.tables
        own |= {self.select.into_table} if self.select.into_table else set()
        return frozenset(own.union(*(sub.plan.relations for sub in self.subqueries)))

    def _subquery(self, node: ast.Subquery | ast.Quantified, scope: Scope) -> Bound:
        inner = SelectBinder(node.select, replace(self.site, outer=scope))
        if node.select.selector is not None:
            message = f"{node.select.selector} has no effect in a subquery: it reads the rows that are there"
            self.problems.error("B604", message, node.select.span, "remove the word")
        plan = inner.bind()
        kind = _subquery_kind(node, plan)
        if kind == "list" and (len(plan.items) != 1 or plan.items[0].name is None):
            message = "IN, ANY and ALL compare with one column"
            self.problems.error("B209", message, node.span, "select one column")
        whole = plan.aggregates and not inner.scope.correlated and plan.row_kind == "aggregate"
        is_in_store = any(stream.kind == "store" for stream in inner.sources.streams)
        if plan.sources and not (whole or is_in_store or all(source.keeps for source in plan.sources)):
            self.problems.error(
                "B209", "a subquery needs a window to read from", node.span, "for example E#lastevent"
            )
        if plan.prevs and not whole:
            message = f"{plan.prevs[0].name}() is not allowed in a subquery, whose rows are read as they are"
            hint = "compute it in a statement of its own, and read what it inserts"
            self.problems.error("B322", message, plan.prevs[0].span, hint)
        if plan.joins or plan.output or plan.insert:
            self.problems.error("B209", "a subquery reads one stream, without output limit", node.span)
        elif is_in_store:
            plan = self._carried(plan, inner.select.sources[0], scope)
        outer = tuple(source.alias for source in inner.scope.sources[inner.scope.own :])
        correlated = is_in_store or inner.scope.correlated
        columns = row_columns(inner.scope, kind, plan.items)
        if columns is not None:
            scope.subquery_rows[len(self.subqueries)] = columns
        self.subqueries.append(SubqueryPlan(plan, kind, correlated, outer, _asks_equal(node)))
        self.scope.tables |= inner.scope.tables
        result = TYPES_OF.get(kind) or plan.items[0].value.type
        return Slot("subquery", len(self.subqueries) - 1, type=result, span=node.span)

    def _carried(self, plan: Plan, source: ast.Source, scope: Scope) -> Plan:
        """A subquery over a table of a store, whose rows the events of the first source carry."""
        instead = self._instead_of_waiting()
        if instead is not None:
            lookups.refuse(self.problems, source.name, source.span, instead)
            return plan
        is_first = scope.sources[0] is self.scope.sources[0]
        lookup, plan = lookups.carried(self.problems, plan, source, len(self.carried), reads_first=is_first)
        self.carried.append(lookup)
        return plan


def _in_partitions(site: Site, name: str, span: Span) -> Site:
    """The site in the partitions of a context, where its variables are known."""
    context = context_named(site.catalog, name, site.problems, span)
    variables = site.catalog.context_variables.get(name, {})
    return replace(site, context=context, catalog=site.catalog.within(variables))


def _subquery_kind(node: ast.Subquery | ast.Quantified, plan: Plan) -> SubqueryKind:
    if isinstance(node, ast.Quantified):
        return "list"
    if node.exists:
        return "exists"
    if plan.group_by:
        return "rows"
    is_value = len(plan.items) == 1 and plan.items[0].name is not None
    if node.listed:
        return "values" if is_value and not plan.aggregates else "rows"
    return "scalar" if is_value else "row"


def _asks_equal(node: ast.Subquery | ast.Quantified) -> bool:
    """True for IN, NOT IN, and what says the same."""
    return isinstance(node, ast.Quantified) and (node.op, node.quantifier) in (("=", "any"), ("!=", "all"))
