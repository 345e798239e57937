"""`create context`, bound: names to columns, points to plans, the properties of the partitions to places."""

from __future__ import annotations

from sql import syntax as ast
from sql.binder.annotations import priority_of
from sql.binder.contexts.level_names import LevelNames
from sql.binder.contexts.point_binder import PointBinder
from sql.binder.reads import Reads, note_reads
from sql.binder.scope import Site
from sql.catalog.streams import Catalog, Stream
from sql.errors import Problems, Span
from sql.plan.bound import Bound, Const
from sql.plan.context_plan import (
    CategoriesPlan,
    ContextPlan,
    EventPointPlan,
    HashedPlan,
    HashedTypePlan,
    KeyedPlan,
    KeyedTypePlan,
    KindPlan,
    LevelPlan,
    OverlappingPlan,
    Property,
    SpanPlan,
    StartPlan,
)
from sql.plan.options import RuleOptions
from sql.types import Type

HASHES = ("consistent_hash_crc32", "hash_code")


def bind_context(
    statement: ast.CreateContext, catalog: Catalog, options: RuleOptions, text: str
) -> ContextPlan:
    """The plan of a `create context`. Raises SqlError with every problem found."""
    site = Site(catalog, options, text)
    if statement.name in catalog.contexts:
        site.problems.error("B811", f"there is a context '{statement.name}' already", statement.span)
    _check_names(statement, site.problems)
    levels = []
    reads: Reads = {}
    for depth, part in enumerate(statement.parts):
        names = LevelNames(depth, part, site)
        levels.append(LevelBinder(part, names).bind())
        for stream, columns in names.reads.items():
            note_reads(reads, stream, columns)
    site.raise_if_any()
    return ContextPlan(
        statement.name,
        tuple(levels),
        options,
        statement.nested,
        priority_of(statement),
        reads=reads,
        text=text,
    )


def _check_names(statement: ast.CreateContext, problems: Problems) -> None:
    seen: set[str] = set()
    for part in statement.parts:
        if part.name in seen:
            problems.error("B811", f"two nested contexts are called '{part.name}'", part.span)
        seen.add(part.name)


class LevelBinder:
    """Binds one level."""

    def __init__(self, part: ast.ContextPart, names: LevelNames) -> None:
        self.part = part
        self.names = names
        self.points = PointBinder(names)
        self.problems = names.site.problems

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
            self.names.times()
            start = self.points.start(kind.start)
            plan = SpanPlan(start, self.points.end(kind.end))
        else:
            assert isinstance(kind, ast.Overlapping)
            plan = self._overlapping(kind)
        return LevelPlan(self.part.name, plan, tuple(self.names.properties), self.part.span)

    # --- segmented ------------------------------------------------------------------------------------------

    def _keyed(self, kind: ast.Keyed) -> KeyedPlan:
        for number in range(len(kind.types[0].keys)):
            self.names.place(f"key{number + 1}", Type.ANY, kind.span)
        types = []
        for item in kind.types:
            stream = self.names.stream(item.stream, item.span)
            keys = tuple(self.names.expression(key, stream, item.name) for key in item.keys)
            condition = self.names.filter(item.filter, stream, item.name)
            types.append(
                KeyedTypePlan(
                    stream.name, keys, condition, self.names.event_place(item.name, stream, item.span)
                )
            )
        self._check_keys(kind, types)
        for number, key in enumerate(types[0].keys):
            self.names.properties[number] = Property(f"key{number + 1}", key.type)
        initiated = tuple(self.points.event(point) for point in kind.initiated)
        self._check_initiated(kind, initiated, types)
        return KeyedPlan(tuple(types), initiated, self.points.end(kind.terminated))

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
        """Report a stream that is listed twice, or whose events are those of another one that is listed."""
        lineage = self.names.site.catalog.lineage
        seen: list[str] = []
        for name, span in streams:
            kin = next((known for known in seen if known in lineage(name) or name in lineage(known)), None)
            if kin == name:
                self.problems.error("B813", f"stream '{name}' is listed twice", span, "list each stream once")
            elif kin is not None:
                self.problems.error(
                    "B813",
                    f"stream '{name}' is listed beside '{kin}', and one of them inherits the other",
                    span,
                    "list the one that is inherited: its events are those of both",
                )
            seen.append(name)

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
            stream = self.names.stream(item.stream, item.span)
            hashes.append(item.call.name if item.call.name in HASHES else "value")
            condition = self.names.filter(item.filter, stream, None)
            types.append(HashedTypePlan(stream.name, self._hash_arguments(item.call, stream), condition))
        self._check_once([(item.stream, item.span) for item in kind.types])
        return HashedPlan(tuple(hashes), tuple(types), kind.granularity, kind.preallocate)

    def _hash_arguments(self, call: ast.Call, stream: Stream) -> tuple[Bound, ...]:
        if call.name not in HASHES:
            bound = self.names.expression(call, stream, None)
            if bound.type not in (Type.ANY, Type.INTEGER, Type.NUMBER) and bound != Const(None):
                self.problems.error(
                    "B815", f"{call.name}() gives {bound.type.value}, and a hash is a whole number", call.span
                )
            return (bound,)
        if not call.args:
            self.problems.error("B815", f"{call.name}() hashes one property at least", call.span)
        return tuple(self.names.expression(arg, stream, None) for arg in call.args)

    def _categories(self, kind: ast.Categories) -> CategoriesPlan:
        stream = self.names.stream(kind.stream, kind.span)
        self.names.place("label", Type.STRING, kind.span)
        conditions = tuple(
            self.names.expression(item.condition, stream, None, condition=True) for item in kind.categories
        )
        labels = tuple(item.label for item in kind.categories)
        for label in {label for label in labels if labels.count(label) > 1}:
            self.problems.error("B811", f"two categories are called '{label}'", kind.span, "rename one")
        return CategoriesPlan(stream.name, labels, conditions, self.names.filter(kind.filter, stream, None))

    # --- in time --------------------------------------------------------------------------------------------

    def _overlapping(self, kind: ast.Overlapping) -> OverlappingPlan:
        self.names.times()
        start = self.points.start(kind.initiated)
        if kind.now and isinstance(start, EventPointPlan):
            self.problems.error(
                "B816",
                "@now cannot stand with an event: it needs a condition that comes by time",
                kind.initiated.span,
            )
        distinct = self._distinct(kind, start)
        return OverlappingPlan(start, self.points.end(kind.terminated), distinct, kind.now)

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
        stream = self.names.stream(start.stream, kind.span)
        alias = self.names.properties[start.place].name
        return tuple(self.names.expression(value, stream, alias) for value in kind.distinct)
