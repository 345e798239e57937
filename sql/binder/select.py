"""The binder: a parsed SELECT and a catalog become a plan, or all problems at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from sql import syntax as ast
from sql.algebra.windows import catalog as windows
from sql.binder import kuiper, relations
from sql.binder.checks import check_clauses, check_plan
from sql.binder.contexts import check_statement, check_without_source, context_named, priority_of
from sql.binder.effects import check_effects
from sql.binder.expressions import ExpressionBinder, Place
from sql.binder.items import SELECT, ItemBinder, row_kind
from sql.binder.output_limits import OutputLimitBinder
from sql.binder.partitions import keys_fixed
from sql.binder.patterns import PatternBinder
from sql.binder.recognize import RecognizeBinder, refuse_join
from sql.binder.scope import Scope, SourceScope
from sql.binder.spreads import SpreadBinder
from sql.binder.windows.from_clause import bind_windows
from sql.binder.windows.group_by import bind_group_window
from sql.binder.windows.parameters import bind_period
from sql.binder.windows.stream_query import bind_lot
from sql.catalog.streams import Catalog, Stream
from sql.errors import Problems, did_you_mean
from sql.plan.bound import Bound, Const, Slot
from sql.plan.contexts import ContextPlan
from sql.plan.logical import (
    EACH_EVENT,
    Criterion,
    GroupWindowPlan,
    ItemPlan,
    JoinPlan,
    Mode,
    Plan,
    SourcePlan,
    SubqueryPlan,
    key_names,
)
from sql.plan.options import RuleOptions
from sql.plan.patterns import LengthPlan
from sql.plan.recognize import RecognizePlan
from sql.types import Type

SubqueryKind = Literal["scalar", "row", "rows", "list", "exists"]

HAVING = Place("HAVING", aggregates=True, prevs=True, windows=True)
ORDER_BY = Place("ORDER BY", aggregates=True, windows=True)
WHERE = Place("WHERE", prevs=True)
GROUP_BY = Place("GROUP BY")
FILTER = Place("a stream's filter", aliases=False, analytics=False)

LOT_AGGREGATES = {"sum": "lot_sum", "nth": "lot_nth", "prior": "lot_prior", "count": "lot_count"}
"""Stream queries: a sum of nothing is 0, nth counts from the earliest (stream-queries.md section 4)."""

KUIPER_AGGREGATES = {"stddev": "stddev_pop", "var": "var_pop"}
"""eKuiper: stddev and var are the population's."""


def bind(select: ast.Select, catalog: Catalog, options: RuleOptions, text: str) -> Plan:
    """The plan of a SELECT. Raises SqlError with every problem found."""
    problems = Problems()
    plan = SelectBinder(select, catalog, options, text, problems).bind()
    problems.raise_if_any(text)
    return replace(plan, warnings=tuple(problems.found))


class SelectBinder:
    """Binds one SELECT; subqueries are bound by binders of their own into the same problems."""

    def __init__(self, select: ast.Select, catalog: Catalog, options: RuleOptions, text: str, problems: Problems,
                 context: ContextPlan | None = None, outer: Scope | None = None, *, on_demand: bool = False,
                 is_trigger: bool = False) -> None:  # fmt: skip
        """`outer`: the scope around a subquery. `on_demand`: the query runs once, over relations.
        `is_trigger`: it is the trigger of a statement that acts."""
        select = relations.with_criteria(select, catalog) if select.into_table else select
        self.select = select
        self.outer = outer
        self.on_demand = on_demand
        self.is_trigger = is_trigger
        self.catalog = catalog
        self.options = options
        self.text = text
        self.problems = problems
        self.context = context
        if select.context is not None:
            self.context = context_named(catalog, select.context, problems, select.span)
            self.catalog = catalog.within(catalog.context_variables.get(select.context, {}))
        self.subqueries: list[SubqueryPlan] = []
        self.read_below: dict[int, set[str] | None] = {}
        """What the windows of a source read from its stream, where a derived-value window has
        replaced the columns."""
        self.patterns: dict[int, PatternBinder] = {}
        """The patterns of FROM by their place."""
        self.sources = [self._stream_of(i, source) for i, source in enumerate(self._all_sources())]
        tables = any(stream.kind in ("scan", "lookup") for stream in self.sources)
        self.mode: Mode = "lots" if select.lots else "sample" if select.windows or tables else "delta"
        self.scope = self._scope()
        self.binder = ExpressionBinder(self.scope, self._subquery)
        self.binder.text = text
        self.binder.epl = self._is_epl()
        self.binder.sampled = self.mode == "sample"
        self.binder.has_window = bool(select.windows)
        self.binder.aggregate_names = {"lots": LOT_AGGREGATES, "sample": KUIPER_AGGREGATES, "delta": {}}[
            self.mode
        ]

    # --- sources --------------------------------------------------------------------------------------------

    def _all_sources(self) -> list[ast.Source]:
        select = self.select
        return ([select.source] if select.source else []) + [join.source for join in select.joins]

    def _stream_of(self, index: int, source: ast.Source) -> Stream:
        if isinstance(source, ast.StreamSource) and source.pattern is not None:
            pattern = PatternBinder(
                source.pattern,
                self.catalog,
                self.options,
                self.text,
                self.problems,
                Scope(self.catalog, self.problems, [], context=self.context),
            )
            self.patterns[index] = pattern
            if self.select.joins or self.is_trigger:
                pattern.refuse_annotations("beside other sources and in a trigger")
            return Stream(source.name, pattern.columns(), declared=pattern.declared())
        stream = self.catalog.streams.get(source.name)
        if stream is None:
            self.problems.error(
                "B202",
                f"unknown stream '{source.name}'",
                source.span,
                did_you_mean(source.name, self.catalog.streams)
                or "declare it with CREATE STREAM or under streams:",
            )
            return Stream(source.name)
        return stream

    def _scope(self) -> Scope:
        if self._matches_alone():
            return Scope(self.catalog, self.problems, self.patterns[0].tag_sources(), context=self.context)
        scopes = []
        for source, stream in zip(self._all_sources(), self.sources, strict=True):
            columns = stream.columns
            scalar = next(iter(columns)) if columns is not None and len(columns) == 1 else None
            is_item = isinstance(source, ast.LotSource)
            declared = {column.name: column.type for column in stream.declared}
            scopes.append(
                SourceScope(
                    source.alias, source.name, columns, scalar if is_item else None, is_item, declared
                )
            )
        scope = Scope(self.catalog, self.problems, scopes, context=self.context, outer=self.outer)
        seen: set[str] = set()
        for source in self._all_sources():
            if source.alias in seen:
                self.problems.error(
                    "B205", f"two sources are called '{source.alias}'", source.span, "give one an alias"
                )
            seen.add(source.alias)
        return scope

    def _matches_alone(self) -> bool:
        """Whether the statement reads the matches of one pattern and nothing beside them:
        tags are its sources."""
        return bool(self.patterns) and not self.select.joins and not self.is_trigger

    def _is_epl(self) -> bool:
        select = self.select
        epl_source = any(
            isinstance(source, ast.StreamSource) and (source.windows or source.filter)
            for source in self._all_sources()
        )
        relations = any(stream.is_relation for stream in self.sources)
        return bool(select.lots or epl_source or select.selector or select.output or select.insert_into or relations
                    or select.annotations or self.outer or self.on_demand or select.into_table)  # fmt: skip

    # --- the statement --------------------------------------------------------------------------------------

    def bind(self) -> Plan:
        select, binder = self.select, self.binder
        check_clauses(self.problems, select, self._all_sources(), self.sources)
        relations.check_sources(self.problems, self._all_sources(), self.sources)
        sources = tuple(self._source(i, source) for i, source in enumerate(self._all_sources()))
        sources = self._driving(sources)
        self.scope.columns_first = binder.epl
        self.scope.aliases = {item.alias: item for item in select.items if item.alias}
        joins = tuple(self._join(join) for join in select.joins)
        window = self._window()
        where = self._where(sources)
        keys, sets = relations.grouping(self.problems, select)
        group_by = tuple(binder.bind(item, GROUP_BY) for item in keys)
        spreads = SpreadBinder(binder, SELECT)
        items_of = ItemBinder(select, binder, self.mode, send_meta=self.options.send_meta)
        items = self._with_fixed_keys(items_of.bind(spreads))
        having = binder.condition(select.having, HAVING)
        order_by = tuple(
            Criterion(binder.bind(order.operand, ORDER_BY), order.descending, order.nulls_first)
            for order in select.order_by
        )
        limit = self._row_count(select.limit, "LIMIT")
        offset = self._row_count(select.offset, "OFFSET")
        output = (
            None if select.output is None else OutputLimitBinder(binder, self.options).bind(select.output)
        )
        items = self._renamed(items)
        into_table = relations.bind_into(binder, select, group_by, items, sets)
        timestamps = self._timestamps()
        timestamp = next(iter(timestamps.values()))[0] if timestamps else None
        plan = Plan(
            text=self.text,
            mode=self.mode,
            sources=sources,
            items=items,
            options=self.options,
            name=next((str(note.value) for note in select.annotations if note.name == "name"), None),
            joins=joins,
            analytics=tuple(binder.analytics),
            window=window,
            where=where,
            group_by=group_by,
            aggregates=tuple(binder.aggregates),
            prevs=tuple(binder.prevs),
            hits=tuple(binder.hits),
            numberings=tuple(binder.numberings),
            spreads=tuple(spreads.found),
            subqueries=tuple(self.subqueries),
            row_kind=row_kind(items, group_by, binder.aggregates),
            having=having,
            order_by=order_by,
            limit=limit,
            offset=offset,
            output=output,
            distinct=select.distinct,
            selector=select.selector or "istream",
            insert=select.insert_into,
            timestamp=timestamp,
            timestamp_format=next(iter(timestamps.values()))[1] if timestamps else None,
            timestamps=timestamps,
            output_columns=None if spreads.found else items_of.output_columns(items),
            reads=self._reads(),
            uses_meta=binder.uses_meta,
            context=self.context if select.context is not None else None,
            priority=priority_of(select),
            into_table=into_table,
            relations=self._relations(),
        )
        plan = kuiper.with_own_times(plan)
        return self._checked(plan if plan.context is None else self._in_context(plan, plan.context))

    def _checked(self, plan: Plan) -> Plan:
        relations.check_target(self.problems, self.select, plan, self.catalog, self.scope)
        check_plan(self.problems, self.select, plan, is_epl=self.binder.epl)
        check_effects(self.problems, self.select, self._all_sources(), plan, is_epl=self.binder.epl)
        return plan

    def _where(self, sources: tuple[SourcePlan, ...]) -> Bound | None:
        """WHERE; that of a statement that keeps no events decides as each arrives."""
        self.scope.at_arrival = self._filters_only(sources)
        where = self.binder.condition(self.select.where, WHERE)
        self.scope.at_arrival = False
        return where

    def _with_fixed_keys(self, items: tuple[ItemPlan, ...]) -> tuple[ItemPlan, ...]:
        """Beside aggregates a key of the context is a property of the partition, no column of some event."""
        if self.context is None or self.mode != "delta" or not self.binder.aggregates:
            return items
        context, streams = self.context, [stream.name for stream in self.sources]
        return tuple(replace(item, value=keys_fixed(item.value, context, streams)) for item in items)

    def _in_context(self, plan: Plan, context: ContextPlan) -> Plan:
        """The plan with the streams of its context among those it reads."""
        check_statement(self.problems, context, set(plan.reads), self.select.span, self.catalog)
        if self.select.source is None:
            check_without_source(self.problems, self.select, plan)
        # Partitions keep and compare whole events, so all streams are read whole.
        return replace(plan, reads=dict.fromkeys((*plan.reads, *context.reads)))

    def _window(self) -> GroupWindowPlan | None:
        """The window in GROUP BY; without one a stream that is joined with tables is
        looked at event by event."""
        if self.mode != "sample":
            return None
        if not self.select.windows:
            return EACH_EVENT
        window = bind_group_window(self.binder, self.select.windows[0])
        if self.select.joins:
            kuiper.check_join_window(self.problems, window)
        return window

    def _source(self, index: int, source: ast.Source) -> SourcePlan:
        if isinstance(source, ast.LotSource):
            return SourcePlan(source.name, source.alias, lot=bind_lot(self._alone(index), source))
        assert isinstance(source, ast.StreamSource)
        binder = self._alone(index)
        binder.scope.at_arrival = True
        condition = binder.condition(source.filter, FILTER)
        binder.scope.at_arrival = False
        pattern = self.patterns[index].bind() if index in self.patterns else None
        plans = bind_windows(binder, source)
        columns = self._derive(index, plans)
        stream = self.sources[index]
        if pattern is not None:
            by_name = not self._matches_alone()
            return SourcePlan(
                "",
                source.alias,
                windows=plans,
                union=source.retain == "union",
                unidirectional=source.unidirectional,
                reclaim_ms=self._reclaim(),
                columns=columns,
                pattern=pattern,
                matches_by_name=by_name,
                keeps_last=self._keeps_last(),
            )
        kind = stream.kind if stream.kind in ("window", "table") else None
        recognize = None
        if source.recognize is not None:
            recognize = self._recognize(index, source.recognize)
            columns = recognize.columns
        return SourcePlan(source.name, source.alias, condition, plans, source.retain == "union", None,
                          source.unidirectional, self._reclaim(), columns, stream.retained_rows,
                          recognize=recognize, keeps_last=self._keeps_last(), relation=kind)  # fmt: skip

    def _recognize(self, index: int, clause: ast.Recognize) -> RecognizePlan:
        """match_recognize: the rest of the statement reads its measures."""
        if self.select.joins:
            refuse_join(self.problems, clause.span)
        scope = self.scope.sources[index]
        recognized = RecognizeBinder(clause, scope, self.catalog, self.text, self.problems)

        def length(node: ast.Expr) -> LengthPlan:
            period = bind_period(self._alone(index), node, "'interval'")
            return LengthPlan(period.parts, period.span)

        plan = recognized.bind(length)
        known = self.scope.reads[index]
        below = None if recognized.reads is None or known is None else known | recognized.reads
        self.read_below[index], self.scope.reads[index] = below, set()
        self.scope.sources[index] = replace(scope, columns=plan.columns, declared={})
        for node, name in (
            (self.select.where, "WHERE"),
            *((item, "GROUP BY") for item in self.select.group_by[:1]),
        ):
            if node is not None:
                self.problems.error(
                    "B809",
                    f"{name} cannot stand beside match_recognize",
                    node.span,
                    "put conditions into DEFINE, or insert the matches into a stream",
                )
        return plan

    def _keeps_last(self) -> bool:
        return any(note.name == "iterableunbound" for note in self.select.annotations)

    def _alone(self, index: int) -> ExpressionBinder:
        """A binder that sees one source only, as source 0, or the tags of its pattern:
        what stands inside FROM."""
        if self._matches_alone():
            tags = ExpressionBinder(self.scope, self._subquery)
            tags.text, tags.epl = self.text, True
            return tags
        scope = Scope(
            self.catalog,
            self.problems,
            [self.scope.sources[index]],
            context=self.context,
            tables=self.scope.tables,
        )
        binder = ExpressionBinder(scope, self._subquery)
        binder.text, binder.epl = self.text, True
        self.scope.reads[index] = scope.reads[0] = self.scope.reads[index]
        return binder

    def _derive(self, index: int, plans: tuple[Any, ...]) -> dict[str, Type] | None:
        """The columns behind the windows: derived-value windows replace the stream's by their own."""
        derived = next(
            (plan for plan in plans if (windows.lookup(plan.name) or plan).role == "derived"), None
        )
        if self._matches_alone():
            return self._derive_of_matches(plans, derived)
        scope = self.scope.sources[index]
        if derived is None:
            return scope.columns
        columns = self._derived_columns(plans, derived, scope.columns)
        # The derived row is what the rest of the statement reads; the stream's own columns
        # were read by the windows.
        self.scope.sources[index] = replace(scope, columns=columns, declared={})
        self.read_below[index], self.scope.reads[index] = self.scope.reads[index], set()
        return columns

    def _derive_of_matches(self, plans: tuple[Any, ...], derived: Any) -> dict[str, Type] | None:
        """The columns behind the windows over a pattern: its tags are read as sources,
        which is None, or one row."""
        if derived is None:
            return None
        columns = self._derived_columns(plans, derived, dict.fromkeys(self.patterns[0].tags, Type.OBJECT))
        self.patterns[0].note_tags(self.scope.reads)
        self.scope.sources[:] = [SourceScope("", "", columns)]
        self.scope.reads[:] = [set()]
        return columns

    @staticmethod
    def _derived_columns(
        plans: tuple[Any, ...], derived: Any, original: dict[str, Type] | None
    ) -> dict[str, Type]:
        """The columns of the rows that a derived-value window posts."""
        columns: dict[str, Type] = {}
        if plans[0].name == "groupwin" and not any(plan.name == "merge" for plan in plans):
            columns |= {
                name: key.type
                for name, key in zip(key_names(plans[0]), plans[0].arguments["keys"], strict=True)
            }
        columns |= dict.fromkeys(windows.posted_columns(derived.name), Type.NUMBER)
        for name, bound in derived.arguments.get("extras", ()):
            columns |= {name: bound.type} if name else (original or {})
        return columns

    def _reclaim(self) -> tuple[int, int] | None:
        hints: dict[str, str] = {}
        for note in self.select.annotations:
            if note.name == "hint" and isinstance(note.value, str):
                hints |= dict(part.strip().split("=", 1) for part in note.value.split(",") if "=" in part)
        if "reclaim_group_aged" not in hints:
            return None
        try:
            age = float(hints["reclaim_group_aged"])
            every = float(hints.get("reclaim_group_freq", age))
        except ValueError:
            self.problems.error(
                "B526", "reclaim_group_aged and reclaim_group_freq are numbers of seconds", self.select.span
            )
            return None
        return round(age * 1000), round(every * 1000)

    def _join(self, join: ast.Join) -> JoinPlan:
        return JoinPlan(join.kind, self.binder.condition(join.on, Place("ON", analytics=False)))

    # --- the rest -------------------------------------------------------------------------------------------

    def _row_count(self, node: ast.Expr | None, name: str) -> Bound | None:
        if node is None:
            return None
        bound = self.binder.bind(node, Place(name, aliases=False, analytics=False))
        if isinstance(bound, Const) and bound.value.__class__ is not int:
            self.problems.error("B304", f"{name} takes a whole number", node.span)
        if (
            isinstance(bound, Const)
            and not self.binder.epl
            and isinstance(bound.value, int)
            and bound.value < 0
        ):
            self.problems.error("B304", f"{name} takes a whole number of at least 0", node.span)
        return bound

    def _timestamps(self) -> dict[str, tuple[str, str | None]]:
        """The time stamps of the streams, if the rule runs in event time: all have one, or none."""
        wanted = self.options.event_time
        flowing = {
            stream.name: stream
            for index, source in enumerate(self.sources)
            for stream in (self.patterns[index].streams.values() if index in self.patterns else (source,))
            if stream.kind == "stream"
        }
        found = {
            s.name: (s.timestamp, s.timestamp_format) for s in flowing.values() if s.timestamp is not None
        }
        if wanted is False or not (found or wanted):
            return {}
        for name in flowing:
            if name not in found:
                hint = 'declare it: WITH (…, TIMESTAMP="ts"), or set isEventTime: false'
                self.problems.error(
                    "B403",
                    f"event time needs a timestamp column, and stream '{name}' has none",
                    self.select.span,
                    hint,
                )
        for stream, reads in zip(self.sources, self._stream_reads(), strict=False):
            if stream.name in found and reads is not None:
                reads.add(found[stream.name][0])
        for pattern in self.patterns.values():
            for name in pattern.reads.keys() & found.keys():
                pattern.note(name, {found[name][0]})
        return found

    def _stream_reads(self) -> list[set[str] | None]:
        """What is read of each source's stream: behind a derived-value window the
        rest reads other columns."""
        return [self.read_below.get(index, reads) for index, reads in enumerate(self.scope.reads)]

    def _reads(self) -> dict[str, frozenset[str] | None]:
        out: dict[str, frozenset[str] | None] = {}
        for index, (source, reads) in enumerate(zip(self.sources, self._stream_reads(), strict=False)):
            if index in self.patterns:
                continue
            known = out.get(source.name, frozenset())
            # What is checked must be decoded.
            checked = frozenset(source.columns or ()) if source.is_strict else frozenset()
            out[source.name] = None if reads is None or known is None else known | reads | checked
        below = [self._pattern_reads(pattern) for pattern in self.patterns.values()]
        for found in (*below, *(sub.plan.reads for sub in self.subqueries)):
            for name, columns in found.items():
                known = out.get(name, frozenset())
                out[name] = None if columns is None or known is None else known | columns
        # Rows of relations are objects, and those of their streams with them.
        return dict.fromkeys(out) if self._relations() else out

    def _pattern_reads(self, pattern: PatternBinder) -> dict[str, frozenset[str] | None]:
        """What a pattern and the statement over its matches read of its streams; of a
        joined one whole events."""
        if self._matches_alone():
            pattern.note_tags(self.scope.reads)
        else:
            pattern.note_whole()
        checked = {
            name: frozenset(stream.columns or ()) if stream.is_strict else frozenset()
            for name, stream in pattern.streams.items()
        }
        return {
            name: None if reads is None else checked[name] | reads for name, reads in pattern.reads.items()
        }

    def _driving(self, sources: tuple[SourcePlan, ...]) -> tuple[SourcePlan, ...]:
        """A stream without window that is joined with tables only drives the join: nothing
        else of it makes rows."""
        tables = sum(source.relation == "table" for source in sources)
        if self.mode != "delta" or len(sources) < 2 or tables != len(sources) - 1:
            return sources
        return tuple(source if source.keeps else replace(source, unidirectional=True) for source in sources)

    def _filters_only(self, sources: tuple[SourcePlan, ...]) -> bool:
        """Whether WHERE decides about each event as it arrives: nothing keeps events."""
        return self.mode == "delta" and len(sources) == 1 and not sources[0].keeps and self.outer is None

    def _renamed(self, items: tuple[ItemPlan, ...]) -> tuple[ItemPlan, ...]:
        """The items under the names of `insert into S(a, b)`."""
        target = self.select.insert_into
        if target is None or not target.columns:
            return items
        shown = [item for item in items if not item.invisible]
        if len(shown) != len(target.columns) or any(item.name is None for item in shown):
            self.problems.error(
                "B542",
                f"{len(target.columns)} columns are named and {len(shown)} are selected",
                target.span,
                "name as many as are selected, and select no *",
            )
            return items
        names = dict(zip(map(id, shown), target.columns, strict=True))
        return tuple(replace(item, name=names.get(id(item), item.name)) for item in items)

    def _relations(self) -> frozenset[str]:
        own = {stream.name for stream in self.sources if stream.is_relation} | self.scope.tables
        own |= {self.select.into_table} if self.select.into_table else set()
        return frozenset(own.union(*(sub.plan.relations for sub in self.subqueries)))

    def _subquery(self, node: ast.Subquery | ast.Quantified, scope: Scope) -> Bound:
        inner = SelectBinder(
            node.select, self.catalog, self.options, self.text, self.problems, self.context, scope
        )
        plan = inner.bind()
        kind = _subquery_kind(node, plan)
        if kind == "list" and (len(plan.items) != 1 or plan.items[0].name is None):
            self.problems.error(
                "B208", "IN, ANY and ALL compare with one column", node.span, "select one column"
            )
        whole = plan.aggregates and not inner.scope.correlated and plan.row_kind == "aggregate"
        if plan.sources and not (whole or all(source.keeps for source in plan.sources)):
            self.problems.error(
                "B209", "a subquery needs a window to read from", node.span, "for example E#lastevent"
            )
        if plan.joins or plan.output or plan.insert:
            self.problems.error("B209", "a subquery reads one stream, without output limit", node.span)
        outer = tuple(source.alias for source in inner.scope.sources[inner.scope.own :])
        self.subqueries.append(SubqueryPlan(plan, kind, inner.scope.correlated, outer))
        self.scope.tables |= inner.scope.tables
        types = {"exists": Type.BOOLEAN, "row": Type.OBJECT, "rows": Type.ARRAY, "list": Type.ARRAY}
        result = types.get(kind) or plan.items[0].value.type
        return Slot("subquery", len(self.subqueries) - 1, type=result, span=node.span)


def _subquery_kind(node: ast.Subquery | ast.Quantified, plan: Plan) -> SubqueryKind:
    if isinstance(node, ast.Quantified):
        return "list"
    if node.exists:
        return "exists"
    if plan.group_by:
        return "rows"
    return "scalar" if len(plan.items) == 1 and plan.items[0].name is not None else "row"
