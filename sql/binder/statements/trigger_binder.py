"""Binding what acts on relations: on … delete, update, select, merge, split streams,
and the same on demand."""

from __future__ import annotations

from typing import Literal

from sql import syntax as ast
from sql.binder.catalog_names import unknown_relation
from sql.binder.expressions.assignments import Target, assigned_column, assigned_variable
from sql.binder.items import SELECT, ItemBinder, output_fields
from sql.binder.place import Place
from sql.binder.relations import lookups, relation_binder
from sql.binder.scope import Site, SourceScope
from sql.binder.select_binder import SelectBinder
from sql.binder.spread_binder import SpreadBinder
from sql.catalog.streams import Catalog, Stream
from sql.errors import Problems, did_you_mean
from sql.plan.bound import Bound
from sql.plan.clauses import ItemPlan
from sql.plan.logical import (
    ActionPlan,
    Assignments,
    BranchPlan,
    ChoicePlan,
    Plan,
    SetPlan,
    SplitPlan,
    TriggerPlan,
)
from sql.plan.lookup_plan import LookupPlan
from sql.plan.options import RuleOptions
from sql.record import replace

WHERE = Place("WHERE", analytics=False, aliases=False)
SET = Place("SET", analytics=False, aliases=False)
BRANCH = Place("WHEN", analytics=False, aliases=False)

UNMATCHED = replace(BRANCH, preferred=0)
"""Where no row of the relation is matched, a name that both have means the trigger's."""

ASSIGNED = replace(SET, preferred=1)
"""In `set` of a relation a name that the trigger has too means the relation's."""

INSERTED = replace(SELECT, preferred=0)
"""In the rows that are inserted it means the trigger's."""

NOTHING = "$nothing"
"""The name of the source that stands in the trigger's place on demand."""


class TriggerBinder:
    """Binds one statement that acts on a relation, for an event or on demand.

    Expressions see the trigger as source 0, the relation as source 1 and its row before the statement,
    `initial`, as source 2.
    """

    def __init__(
        self,
        trigger: ast.Source | None,
        relation: ast.StreamSource | None,
        site: Site,
        context: str | None = None,
    ) -> None:
        """`trigger`: None on demand. `context`: the name of the context in whose partitions it runs."""
        self.site = site
        self.problems = site.problems
        self.relation = relation
        self.stream = self._stream(relation)
        self.trigger = trigger or ast.StreamSource(NOTHING, NOTHING)
        select = ast.Select((), self.trigger, span=self.trigger.span, context=context)
        own = site if trigger is not None else _on_demand(site)
        self.select = SelectBinder(select, own, is_trigger=True)
        self.binder = self.select.binder
        self.source = self.select.sources.plan(0, self.trigger) if trigger is not None else None
        self._check_trigger()
        scope = self.select.scope
        if relation is not None:
            if relation.alias == self.trigger.alias:
                message = f"the trigger and the rows are both called '{relation.alias}'"
                self.problems.error("B205", message, relation.span, "give one an alias")
            rows = SourceScope.of(self.stream, relation.alias)
            scope.sources += [rows, SourceScope("initial", "initial", rows.columns)]
            scope.reads += [set(), set()]
            scope.own = 2

    def _check_trigger(self) -> None:
        """Report a table in the trigger's place: it has rows, and no events."""
        for stream in self.select.sources.streams:
            if stream.kind in ("table", "scan", "lookup", "store"):
                what, hint = f"table '{stream.name}' has no events", "name the stream whose events change it"
                self.problems.error("B533", f"{what}: it triggers nothing", self.trigger.span, hint)

    @property
    def lookup_plans(self) -> tuple[LookupPlan, ...]:
        """The requests of the subqueries, for which an event of the trigger waits."""
        return tuple(self.select.carried)

    def _stream(self, relation: ast.StreamSource | None) -> Stream:
        if relation is None:
            return Stream("")
        found = self.site.catalog.streams.get(relation.name)
        if found is None or not found.is_relation:
            unknown_relation(self.site, relation.name, relation.span)
            self.site.raise_if_any()
        assert found is not None
        return found

    # --- statements -----------------------------------------------------------------------------------------

    def delete(self, where: ast.Expr | None) -> TriggerPlan:
        """`delete from W where …`."""
        condition = self.binder.condition(where, WHERE)
        return self._plan(condition, (BranchPlan(True, None, (ActionPlan("delete"),)),), shows="rows")

    def update(self, assignments: tuple[ast.Assignment, ...], where: ast.Expr | None) -> TriggerPlan:
        """`update W set … where …`."""
        condition = self.binder.condition(where, WHERE)
        action = ActionPlan("update", assignments=self._assignments(assignments))
        return self._plan(condition, (BranchPlan(True, None, (action,)),))

    def merge(self, statement: ast.OnMerge) -> TriggerPlan:
        """`merge W where … when …`."""
        condition = self.binder.condition(statement.where, WHERE)
        return self._plan(condition, tuple(self._branch(branch) for branch in statement.branches))

    def split(self, statement: ast.Split) -> SplitPlan:
        """`insert into A select … insert into B select …`."""
        branches = tuple(
            ActionPlan(
                "insert",
                part.into.stream,
                self._items(part.items, part.into.columns, part),
                where=self.binder.condition(part.where, WHERE),
            )
            for part in statement.branches
        )
        for part, branch in zip(statement.branches, branches, strict=True):
            self._check_target(part.into.stream, branch.items, part)
        self.site.raise_if_any()
        assert self.source is not None
        return SplitPlan(self.source, self._actions(branches), statement.all, tuple(self.select.subqueries))

    def _plan(
        self,
        where: Bound | None,
        branches: tuple[BranchPlan, ...],
        shows: Literal["rows", "changes"] = "changes",
    ) -> TriggerPlan:
        self.site.raise_if_any()
        assert self.relation is not None
        read = frozenset({self.stream.name} | self.select._relations() | self.select.scope.tables)
        return TriggerPlan(
            self.source,
            self.stream.name,
            self.relation.alias,
            where,
            tuple(replace(branch, actions=self._actions(branch.actions)) for branch in branches),
            shows,
            tuple(self.select.subqueries),
            read,
        )

    def assign(self, assignments: tuple[ast.Assignment, ...]) -> SetPlan:
        """`set variable = …`."""
        bound = tuple((item.name, assigned_variable(self.binder, item, SET)) for item in assignments)
        self.site.raise_if_any()
        assert self.source is not None
        return SetPlan(self.source, bound, tuple(self.select.subqueries))

    # --- parts ----------------------------------------------------------------------------------------------

    def _branch(self, branch: ast.MergeBranch) -> BranchPlan:
        condition = self.binder.condition(branch.condition, BRANCH if branch.matched else UNMATCHED)
        actions = tuple(self._action(action, matched=bool(branch.matched)) for action in branch.actions)
        return BranchPlan(branch.matched, condition, actions)

    def _action(self, action: ast.MergeAction, *, matched: bool) -> ActionPlan:
        if not matched and action.kind != "insert":
            self.problems.error("B556", "WHEN NOT MATCHED inserts: there is no row to change", action.span)
        where = self.binder.condition(action.where, WHERE)
        if action.kind != "insert":
            return ActionPlan(action.kind, assignments=self._assignments(action.assignments), where=where)
        self.binder.scope.own = 2 if matched else 1
        items = self._items(action.items, action.columns, action)
        self.binder.scope.own = 2
        target = action.into or self.stream.name
        self._check_target(target, items, action)
        return ActionPlan("insert", None if target == self.stream.name else target, items, where=where)

    def _actions(self, actions: tuple[ActionPlan, ...]) -> tuple[ActionPlan, ...]:
        """Actions once all subqueries are bound: rows to insert have nothing of what was asked for."""
        return tuple(
            replace(action, items=lookups.without_answers(action.items, self.lookup_plans))
            for action in actions
        )

    def _items(
        self, items: tuple[ast.SelectItem, ...], columns: tuple[str, ...], at: ast.Node
    ) -> tuple[ItemPlan, ...]:
        target = ast.InsertInto(self.stream.name, columns=columns)
        select = ast.Select(items, self.trigger, insert_into=target, span=at.span)
        bound = ItemBinder(select, self.binder, INSERTED).bind(SpreadBinder(self.binder, WHERE))
        if self.binder.aggregates:
            self.problems.error("B330", "an aggregate cannot stand here: each event acts by itself", at.span)
        if not columns:
            return bound
        if len(columns) != len(bound):
            self.problems.error(
                "B542", f"{len(columns)} columns are named and {len(bound)} are selected", at.span
            )
        return tuple(replace(item, name=name) for item, name in zip(bound, columns, strict=False))

    def _assignments(self, assignments: tuple[ast.Assignment, ...]) -> Assignments:
        """`set` of the relation's columns."""
        out = []
        relations = self.site.catalog.relations
        relation = relations[self.stream.name].declaration if self.stream.is_relation else None
        alias = self.stream.name if self.relation is None else self.relation.alias
        target = Target(self.stream, (alias, self.stream.name))
        for item in assignments:
            if item.name in getattr(relation, "aggregates", {}):
                self.problems.error("B550", f"column '{item.name}' is written by into table only", item.span)
                continue
            value = assigned_column(self.binder, item, ASSIGNED, target)
            out.append((item.name, value))
        return tuple(out)

    def _check_target(self, name: str, items: tuple[ItemPlan, ...], at: ast.Node) -> None:
        """Check that the rows of an insert fit their target; an unknown stream is declared by them."""
        stream = self.site.catalog.streams.get(name)
        if stream is not None and stream.is_relation:
            relation_binder.check_columns(stream, items, self.binder.scope, at)
        elif stream is None or stream.derived:
            select = ast.Select((), span=at.span)
            columns = ItemBinder(select, self.binder).output_columns(items)
            self.site.catalog.derive(name, columns, output_fields(self.binder, items))
        else:
            relation_binder.check_declared(self.problems, stream, items, at)


def _on_demand(site: Site) -> Site:
    """The site of a statement without a trigger, in whose place stands an empty stream."""
    catalog = site.catalog.within({})
    catalog.streams = {**catalog.streams, NOTHING: Stream(NOTHING, {})}
    return replace(site, catalog=catalog, on_demand=True)


def bind_choice(statement: ast.OnSelect, site: Site) -> Plan:
    """`on trigger select … from W …`: a join of the trigger with the relation,
    evaluated anew for each event."""
    problems, catalog = site.problems, site.catalog
    source = statement.select.source
    stream = catalog.streams.get(source.name) if source is not None else None
    if source is None or stream is None or not stream.is_relation or statement.select.joins:
        problems.error(
            "B202",
            "ON … SELECT reads one named window or table",
            statement.span,
            did_you_mean(source.name, catalog.relations) if source is not None else None,
        )
        site.raise_if_any()
    assert source is not None
    trigger = statement.trigger
    if isinstance(trigger, ast.StreamSource):
        trigger = replace(trigger, unidirectional=True)
    select = replace(
        statement.select,
        source=trigger,
        joins=(ast.Join("cross", source, span=source.span),),
        annotations=statement.annotations,
        context=statement.context,
    )
    _check_answer(problems, statement.select)
    plan = SelectBinder(select, site).bind()
    site.raise_if_any()
    streams = {*plan.sources[0].streams, *(name for part in plan.subqueries for name in part.plan.reads)}
    streams |= set() if plan.context is None else set(plan.context.reads)
    reads = {name: columns for name, columns in plan.reads.items() if name in streams}
    found, acts = tuple(problems.found), ChoicePlan(plan, True, statement.delete)
    # As each triggered statement, it acts on an event when this arrives.
    return replace(plan, timestamp=None, timestamps={}, reads=reads, warnings=found, acts=acts)


def _check_answer(problems: Problems, select: ast.Select) -> None:
    """Report a remove stream and an output limit of ON … SELECT: each event is answered by itself and at
    once, and nothing leaves an answer."""
    if select.output is not None:
        hint = "insert the rows into a stream, and limit the output of a statement that reads it"
        problems.error("B604", "ON … SELECT has no output limit: it answers each event at once",
                       select.output.span, hint)  # fmt: skip
    if select.selector == "rstream":
        problems.error("B604", "ON … SELECT has no remove stream: it posts what it finds", select.span)
    elif select.selector == "irstream":
        message = "irstream has no effect: ON … SELECT posts what it finds, and nothing leaves"
        problems.warn("B705", message, select.span, "remove it, or select irstream from the named window")


def bind_question(select: ast.Select, catalog: Catalog, options: RuleOptions, text: str) -> ChoicePlan:
    """A select on demand: its sources are relations, whose rows are there."""
    site = Site(catalog, options, text, on_demand=True)
    for source in select.sources:
        _check_rows(site, source)
    site.raise_if_any()
    if select.output is not None or select.insert_into is not None:
        message = "a question on demand is answered once: it has no output limit and inserts nowhere"
        site.problems.error("B557", message, select.span)
    plan = SelectBinder(select, site).bind()
    site.raise_if_any()
    return ChoicePlan(plan, False)


def _check_rows(site: Site, source: ast.Source) -> None:
    """Report a source that keeps no rows."""
    known = site.catalog.streams.get(source.name)
    if not source.name:
        hint = "ask a named window or a table"
        site.problems.error("B557", "a pattern keeps no rows to ask for", source.span, hint)
    elif known is None:
        unknown_relation(site, source.name, source.span)
    elif not known.is_relation:
        message = f"'{source.name}' is a {known.word}: it keeps no rows to ask for"
        site.problems.error("B557", message, source.span, "ask a named window or a table")
