"""`create context`, bound: names to columns, points to plans, the properties of the partitions to places."""

from __future__ import annotations

from sql import syntax as ast
from sql.binder.contexts.correlation import correlation_of
from sql.binder.expression_binder import ExpressionBinder, Place
from sql.binder.patterns.bind import PatternBinder
from sql.binder.scope import Scope, SourceScope
from sql.calendar.period import Period
from sql.catalog.streams import Catalog, Stream
from sql.errors import Problems, Span, did_you_mean
from sql.plan.bound import Bound, Const, Slot
from sql.plan.context_plan import (
    AfterPlan,
    CategoriesPlan,
    ContextPlan,
    CrontabPlan,
    EndPlan,
    EventPointPlan,
    HashedPlan,
    HashedTypePlan,
    KeyedPlan,
    KeyedTypePlan,
    KindPlan,
    LevelPlan,
    NowPlan,
    OverlappingPlan,
    PatternPointPlan,
    Property,
    SpanPlan,
    StartPlan,
)
from sql.plan.logical import PeriodArgument, Plan
from sql.plan.options import RuleOptions
from sql.types import Type

HASHES = ("consistent_hash_crc32", "hash_code")

POINT = Place("the condition of a context", analytics=False, aliases=False)


def bind_context(
    statement: ast.CreateContext, catalog: Catalog, options: RuleOptions, text: str
) -> ContextPlan:
    """The plan of a `create context`. Raises SqlError with every problem found."""
    problems = Problems()
    if statement.name in catalog.contexts:
        problems.error("B811", f"there is a context '{statement.name}' already", statement.span)
    _check_names(statement, problems)
    levels = []
    reads: dict[str, frozenset[str] | None] = {}
    for depth, part in enumerate(statement.parts):
        level = LevelBinder(depth, part, catalog, options, problems, text)
        levels.append(level.bind())
        for stream, columns in level.reads.items():
            known = reads.get(stream, frozenset())
            reads[stream] = None if columns is None or known is None else known | columns
    problems.raise_if_any(text)
    return ContextPlan(
        statement.name,
        tuple(levels),
        options,
        statement.nested,
        priority_of(statement),
        reads=reads,
        text=text,
    )


def priority_of(statement: ast.Statement) -> int:
    """The number of `@Priority`; 0 without one."""
    found = (note.value for note in statement.annotations if note.name == "priority")
    value = next(found, 0)
    return value if isinstance(value, int) else 0


def _check_names(statement: ast.CreateContext, problems: Problems) -> None:
    seen: set[str] = set()
    for part in statement.parts:
        if part.name in seen:
            problems.error("B811", f"two nested contexts are called '{part.name}'", part.span)
        seen.add(part.name)


class LevelBinder:
    """Binds one level. Names of starting events become places, which the end condition may read."""

    def __init__(
        self,
        depth: int,
        part: ast.ContextPart,
        catalog: Catalog,
        options: RuleOptions,
        problems: Problems,
        text: str,
    ) -> None:
        self.depth = depth
        self.part = part
        self.catalog = catalog
        self.options = options
        self.problems = problems
        self.text = text
        self.properties: list[Property] = []
        self.reads: dict[str, frozenset[str] | None] = {}

    def bind(self) -> LevelPlan:
        """The plan of the level."""
        kind = self.part.kind
        if isinstance(kind, ast.Keyed):
            plan: KindPlan = self._keyed(kind)
        elif isinstance(kind, ast.Hashed):
            plan = self._hashed(kind)
        elif isinstance(kind, ast.Categories):
            plan = self._categories(kind)
        elif isinstance(kind, ast.NonOverlapping):
            self._times()
            start = self._start(kind.start)
            plan = SpanPlan(start, self._end(kind.end))
        else:
            assert isinstance(kind, ast.Overlapping)
            plan = self._overlapping(kind)
        return LevelPlan(self.part.name, plan, tuple(self.properties), self.part.span)

    # --- names and expressions ------------------------------------------------------------------------------

    def _place(
        self, name: str | None, kind: Type, span: Span, columns: dict[str, Type] | None = None
    ) -> int | None:
        """The place of a property; a problem where the name is taken."""
        if name is None:
            return None
        if any(item.name == name for item in self.properties) or name in ("id", "name"):
            self.problems.error(
                "B811", f"two properties of the context are called '{name}'", span, "rename one"
            )
        self.properties.append(Property(name, kind, columns))
        return len(self.properties) - 1

    def _event_place(self, name: str | None, stream: Stream, span: Span) -> int | None:
        if name is not None:
            self.reads[stream.name] = None
        return self._place(name, Type.OBJECT, span, stream.columns)

    def _times(self) -> None:
        self._place("startTime", Type.INTEGER, self.part.span)
        self._place("endTime", Type.INTEGER, self.part.span)

    def _stream(self, name: str, span: Span) -> Stream:
        stream = self.catalog.streams.get(name)
        if stream is None:
            hint = did_you_mean(name, self.catalog.streams) or "declare it before the context"
            self.problems.error("B202", f"unknown stream '{name}'", span, hint)
            return Stream(name)
        if stream.kind != "stream":
            self.problems.error("B813", f"'{name}' is a table, and a context divides streams", span)
        return stream

    def _binder(self, stream: Stream, alias: str | None) -> ExpressionBinder:
        columns = {column.name: column.type for column in stream.declared}
        scope = Scope(
            self.catalog,
            self.problems,
            [SourceScope(alias or stream.name, stream.name, stream.columns, declared=columns)],
        )
        scope.places = self._places(alias)
        binder = ExpressionBinder(scope, self._no_subquery)
        binder.text, binder.epl = self.text, True
        return binder

    def _places(self, alias: str | None) -> dict[str, tuple[Slot, Property]]:
        """The events that started the partition, by name."""
        return {
            item.name: (Slot("context", (self.depth, index), type=item.type), item)
            for index, item in enumerate(self.properties)
            if item.type in (Type.OBJECT, Type.ARRAY) and item.name != alias
        }

    def _no_subquery(self, node: ast.Subquery | ast.Quantified, scope: Scope) -> Bound:
        self.problems.error("B209", "a subquery cannot stand in the definition of a context", node.span)
        return Const(None)

    def _expression(
        self, node: ast.Expr, stream: Stream, alias: str | None, *, condition: bool = False
    ) -> Bound:
        binder = self._binder(stream, alias)
        bound = binder.condition(node, POINT) if condition else binder.bind(node, POINT)
        assert bound is not None
        found = binder.scope.reads[0]
        known = self.reads.get(stream.name, frozenset())
        self.reads[stream.name] = None if found is None or known is None else known | found
        return bound

    def _filter(self, node: ast.Expr | None, stream: Stream, alias: str | None) -> Bound | None:
        self.reads.setdefault(stream.name, frozenset())
        return None if node is None else self._expression(node, stream, alias, condition=True)

    # --- segmented ------------------------------------------------------------------------------------------

    def _keyed(self, kind: ast.Keyed) -> KeyedPlan:
        for number in range(len(kind.types[0].keys)):
            self._place(f"key{number + 1}", Type.ANY, kind.span)
        types = []
        for item in kind.types:
            stream = self._stream(item.stream, item.span)
            keys = tuple(self._expression(key, stream, item.name) for key in item.keys)
            condition = self._filter(item.filter, stream, item.name)
            types.append(
                KeyedTypePlan(stream.name, keys, condition, self._event_place(item.name, stream, item.span))
            )
        self._check_keys(kind, types)
        for number, key in enumerate(types[0].keys):
            self.properties[number] = Property(f"key{number + 1}", key.type)
        initiated = tuple(self._event_point(point) for point in kind.initiated)
        self._check_initiated(kind, initiated, types)
        return KeyedPlan(tuple(types), initiated, self._end(kind.terminated))

    def _check_keys(self, kind: ast.Keyed, types: list[KeyedTypePlan]) -> None:
        self._check_once([(item.stream, node.span) for item, node in zip(types, kind.types, strict=True)])
        first = types[0].keys
        for item, node in zip(types[1:], kind.types[1:], strict=True):
            if len(item.keys) != len(first):
                self.problems.error(
                    "B814",
                    f"'{item.stream}' has {len(item.keys)} keys, '{types[0].stream}' {len(first)}",
                    node.span,
                    "list as many keys for each stream",
                )
                continue
            for mine, theirs in zip(item.keys, first, strict=True):
                if not (mine.type.accepts(theirs.type) or theirs.type.accepts(mine.type)):
                    self.problems.error(
                        "B814",
                        f"the key of '{item.stream}' is {mine.type.value}, that of "
                        f"'{types[0].stream}' {theirs.type.value}",
                        mine.span,
                    )

    def _check_once(self, streams: list[tuple[str, Span]]) -> None:
        seen: set[str] = set()
        for name, span in streams:
            if name in seen:
                self.problems.error("B813", f"stream '{name}' is listed twice", span, "list each stream once")
            seen.add(name)

    def _check_initiated(
        self, kind: ast.Keyed, initiated: tuple[EventPointPlan, ...], types: list[KeyedTypePlan]
    ) -> None:
        listed = {item.stream for item in types}
        for point, node in zip(initiated, kind.initiated, strict=True):
            if point.stream not in listed:
                self.problems.error(
                    "B813",
                    f"'{point.stream}' initiates, but is not listed in PARTITION BY",
                    node.span,
                    f"add its key: … from {point.stream}",
                )
        if initiated and any(item.place is not None for item in types):
            self.problems.error(
                "B811", "names stand in PARTITION BY or in INITIATED BY, not in both", kind.span
            )
        self._check_once(
            [(point.stream, node.span) for point, node in zip(initiated, kind.initiated, strict=True)]
        )

    def _hashed(self, kind: ast.Hashed) -> HashedPlan:
        hashes, types = [], []
        for item in kind.types:
            stream = self._stream(item.stream, item.span)
            hashes.append(item.call.name if item.call.name in HASHES else "value")
            condition = self._filter(item.filter, stream, None)
            types.append(HashedTypePlan(stream.name, self._hash_arguments(item.call, stream), condition))
        self._check_once([(item.stream, item.span) for item in kind.types])
        return HashedPlan(tuple(hashes), tuple(types), kind.granularity, kind.preallocate)

    def _hash_arguments(self, call: ast.Call, stream: Stream) -> tuple[Bound, ...]:
        if call.name not in HASHES:
            bound = self._expression(call, stream, None)
            if bound.type not in (Type.ANY, Type.INTEGER, Type.NUMBER) and bound != Const(None):
                self.problems.error(
                    "B815", f"{call.name}() gives {bound.type.value}, and a hash is a whole number", call.span
                )
            return (bound,)
        if not call.args:
            self.problems.error("B815", f"{call.name}() hashes one property at least", call.span)
        return tuple(self._expression(arg, stream, None) for arg in call.args)

    def _categories(self, kind: ast.Categories) -> CategoriesPlan:
        stream = self._stream(kind.stream, kind.span)
        self._place("label", Type.STRING, kind.span)
        conditions = tuple(
            self._expression(item.condition, stream, None, condition=True) for item in kind.categories
        )
        labels = tuple(item.label for item in kind.categories)
        for label in {label for label in labels if labels.count(label) > 1}:
            self.problems.error("B811", f"two categories are called '{label}'", kind.span, "rename one")
        return CategoriesPlan(stream.name, labels, conditions, self._filter(kind.filter, stream, None))

    # --- in time --------------------------------------------------------------------------------------------

    def _overlapping(self, kind: ast.Overlapping) -> OverlappingPlan:
        self._times()
        start = self._start(kind.initiated)
        if kind.now and isinstance(start, EventPointPlan):
            self.problems.error(
                "B816",
                "@now cannot stand with an event: it needs a condition that comes by time",
                kind.initiated.span,
            )
        distinct = self._distinct(kind, start)
        return OverlappingPlan(start, self._end(kind.terminated), distinct, kind.now)

    def _distinct(self, kind: ast.Overlapping, start: StartPlan) -> tuple[Bound, ...]:
        if kind.distinct is None:
            return ()
        if not isinstance(start, EventPointPlan) or start.place is None or not kind.distinct:
            self.problems.error(
                "B816",
                "DISTINCT needs values and an initiating event with a name",
                kind.span,
                "initiated by distinct(id) Order as o",
            )
            return ()
        stream = self._stream(start.stream, kind.span)
        alias = self.properties[start.place].name
        return tuple(self._expression(value, stream, alias) for value in kind.distinct)

    # --- points ---------------------------------------------------------------------------------------------

    def _start(self, node: ast.Point) -> StartPlan:
        return NowPlan() if isinstance(node, ast.NowPoint) else self._point(node)

    def _end(self, node: ast.Point | None) -> EndPlan | None:
        return None if node is None else self._point(node)

    def _point(self, node: ast.Point) -> EndPlan:
        if isinstance(node, ast.EventPoint):
            return self._event_point(node)
        if isinstance(node, ast.CrontabPoint):
            return self._crontab(node)
        if isinstance(node, ast.PatternPoint):
            return self._pattern_point(node)
        assert isinstance(node, ast.PeriodPoint)
        return AfterPlan(self._period(node.period))

    def _event_point(self, node: ast.EventPoint) -> EventPointPlan:
        stream = self._stream(node.stream, node.span)
        correlation, rest = correlation_of(self._filter(node.filter, stream, node.name))
        return EventPointPlan(stream.name, rest, self._event_place(node.name, stream, node.span), correlation)

    def _pattern_point(self, node: ast.PatternPoint) -> PatternPointPlan:
        around = Scope(self.catalog, self.problems, [])
        around.places = self._places(None)
        binder = PatternBinder(node.pattern, self.catalog, self.options, self.text, self.problems, around)
        binder.refuse_annotations("in the definition of a context")
        plan = binder.bind()
        for stream in plan.streams:
            self.reads[stream] = None
        if node.name is not None:
            place = self._place(
                node.name, Type.OBJECT, node.span, dict.fromkeys((tag.name for tag in plan.tags), Type.ANY)
            )
            return PatternPointPlan(plan, (), place, node.inclusive)
        places = tuple(
            self._place(tag.name, Type.ARRAY if tag.is_list else Type.OBJECT, node.span, tag.columns)
            for tag in plan.tags
        )
        return PatternPointPlan(plan, places, None, node.inclusive)

    def _crontab(self, node: ast.CrontabPoint) -> CrontabPlan:
        from sql.calendar.crontab import Crontab

        for fields in node.crontabs:
            try:
                Crontab.parse([item.text for item in fields], self.options.zone_info())
            except ValueError as failure:
                self.problems.error("B528", f"crontab: {failure}", fields[0].span.to(fields[-1].span))
        return CrontabPlan(node.crontabs)

    def _period(self, node: ast.Expr) -> PeriodArgument:
        assert isinstance(node, ast.PeriodLiteral)
        binder = ExpressionBinder(Scope(self.catalog, self.problems, []), self._no_subquery)
        parts = tuple((binder.bind(part.amount, POINT), part.unit) for part in node.parts)
        for bound, _ in parts:
            binder.expect(bound, Type.NUMBER, "AFTER takes a length of time", node.span)
        amounts = {unit: bound.value for bound, unit in parts if isinstance(bound, Const)}
        try:
            Period.of(
                {unit: value for unit, value in amounts.items() if value is not None}, zero_allowed=True
            )
        except ValueError as error:
            self.problems.error("B506", f"'after': {error}", node.span)
        return PeriodArgument(parts, node.span)


def check_statement(
    problems: Problems, context: ContextPlan, streams: set[str], span: Span, catalog: Catalog
) -> None:
    """A statement of a segmented context reads a stream that the context divides, or a relation of its
    partitions."""
    if any(name in catalog.streams and catalog.streams[name].context == context.name for name in streams):
        return
    for level in context.levels:
        if streams and level.listed and not level.listed & streams:
            listed = " or ".join(f"'{name}'" for name in sorted(level.listed))
            problems.error(
                "B817",
                f"no part of the statement reads {listed}, which context '{level.name}' divides",
                span,
                "every event of other streams would be seen by every partition",
            )


def check_without_source(problems: Problems, select: ast.Select, plan: Plan) -> None:
    """Without FROM there are the properties of the partition only, shown when it starts or when it ends."""
    if plan.aggregates or plan.prevs or plan.where is not None or plan.group_by or plan.having is not None:
        problems.error(
            "B818", "without FROM there are the properties of the partition only", select.span, "add FROM"
        )
    limit = select.output
    if limit is not None and (
        limit.terminated is None or limit.every or limit.every_events or limit.at or limit.when
    ):
        problems.error(
            "B818",
            "without FROM a row comes when the partition starts, or when it ends",
            limit.span,
            "write OUTPUT WHEN TERMINATED, or nothing",
        )


def context_named(catalog: Catalog, name: str, problems: Problems, span: Span) -> ContextPlan | None:
    """The context a statement names; a problem where there is none."""
    found = catalog.contexts.get(name)
    if found is None:
        owner = next(
            (
                item.name
                for item in catalog.contexts.values()
                if item.nested and any(level.name == name for level in item.levels)
            ),
            None,
        )
        hint = f"'{name}' is a part of context '{owner}': name that" if owner else None
        problems.error(
            "B810",
            f"unknown context '{name}'",
            span,
            hint or did_you_mean(name, catalog.contexts) or "declare it: create context …",
        )
    return found
