"""`explain` for contexts: a node per level around the statement, the starts and ends of its partitions, and
their cost."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from sql.algebra.context.end_atoms import atoms_of
from sql.compiler.statement.deferral import fits_cells
from sql.explain import pattern_tree, words
from sql.explain.time_lengths import length
from sql.explain.tree_node import TreeNode
from sql.plan.bound import Bound, conjuncts
from sql.plan.context_plan import (
    AfterPlan,
    CategoriesPlan,
    ContextPlan,
    CrontabPlan,
    EndPlan,
    EventPointPlan,
    HashedPlan,
    KeyedPlan,
    KindPlan,
    LevelPlan,
    NowPlan,
    OverlappingPlan,
    PatternPointPlan,
    SpanPlan,
)
from sql.plan.correlation import correlation_of
from sql.plan.logical import Plan
from sql.plan.walk import slots_of


def around(body: TreeNode, context: ContextPlan, plan: Plan) -> TreeNode:
    """The statement inside the levels of its context."""
    used = ", ".join(_used(plan))
    body.remark = "; ".join(part for part in (body.remark, used and f"of the partition: {used}") if part)
    node = body
    for level in reversed(context.levels):
        points = LevelNodes(context, level)
        name = level.name if level.name == context.name else f"{context.name}.{level.name}"
        node = TreeNode(f"context {name}", points.remark(), [*points.nodes(), node])
    return node


def _used(plan: Plan) -> list[str]:
    """The properties of the partition that a statement reads."""
    own = (words.slice_of(plan.text, slot.span) for slot in slots_of(plan) if slot.kind == "context")
    return [name for name in dict.fromkeys(own) if name]


class LevelNodes:
    """The nodes of one level's partitions: the lookup by event, the starts and the ends."""

    def __init__(self, context: ContextPlan, level: LevelPlan) -> None:
        self.context = context
        self.level = level
        self.text = context.text

    def remark(self) -> str:
        """The number of partitions."""
        kind = self.level.kind
        if isinstance(kind, KeyedPlan):
            return "a partition per key"
        if isinstance(kind, HashedPlan):
            made = "all from the start" if kind.preallocate else "each from its first event"
            return f"{kind.granularity} partitions, {made}"
        if isinstance(kind, CategoriesPlan):
            return f"{len(kind.labels)} partitions, all from the start"
        if isinstance(kind, SpanPlan):
            return "one partition or none"
        once = f", one per {words.several(kind.distinct, self.text)}" if kind.distinct else ""
        return f"a partition from each start{once}; they overlap"

    def nodes(self) -> Iterator[TreeNode]:
        """The nodes beside the statement."""
        kind = self.level.kind
        if isinstance(kind, KeyedPlan):
            for item in kind.types:
                label = f"key {words.several(item.keys, self.text)}{self._named(item.place)}"
                yield TreeNode(label, f"found by hash; stream {item.stream}{self._where(item.filter)}")
            for start in kind.initiated:
                yield self._point("initiated by", start)
            yield self._end("terminated by", kind.end)
        elif isinstance(kind, HashedPlan):
            for name, of in zip(kind.hashes, kind.types, strict=True):
                label = f"{name}({words.several(of.arguments, self.text)}) mod {kind.granularity}"
                yield TreeNode(label, f"found by number; stream {of.stream}{self._where(of.filter)}")
        elif isinstance(kind, CategoriesPlan):
            for name, condition in zip(kind.labels, kind.conditions, strict=True):
                label = f"category {name}: {words.written(condition, self.text)}"
                yield TreeNode(label, f"asked of each event; stream {kind.stream}{self._where(kind.filter)}")
        elif isinstance(kind, SpanPlan):
            yield (
                TreeNode("start @now", "at once")
                if isinstance(kind.start, NowPlan)
                else self._point("start", kind.start)
            )
            yield self._end("end", kind.end)
        else:
            yield self._initiated(kind)
            yield self._end("terminated by", kind.end)

    def _initiated(self, kind: OverlappingPlan) -> TreeNode:
        if isinstance(kind.start, NowPlan):
            return TreeNode("initiated @now", "at once")
        return self._point("initiated @now and" if kind.now else "initiated by", kind.start)

    def _end(self, word: str, end: EndPlan | None) -> TreeNode:
        if end is not None:
            searches = "a search for each partition"
            if isinstance(end, PatternPointPlan):
                searches = f"{searches}, {_searched(end)}"
            return self._point(word, end, searches)
        idle_ms = self.context.idle_ms
        if idle_ms is not None and isinstance(self.level.kind, KeyedPlan):
            return TreeNode(f"idle {length(idle_ms)}", "ends the partition of a silent key")
        is_outermost = self.level is self.context.levels[0]
        return TreeNode(
            f"{word} nothing", "lives for ever" if is_outermost else "ends with what is around it"
        )

    def _point(self, word: str, point: EndPlan, searches: str = "one search") -> TreeNode:
        if isinstance(point, EventPointPlan):
            parts = (
                [] if point.correlation is None else [point.correlation.event, point.correlation.partition]
            )
            equal = [" = ".join(words.written(part, self.text) for part in parts)] if parts else []
            rest = [words.written(part, self.text) for part in conjuncts(point.filter)]
            condition = f"({', '.join([*equal, *rest])})" if equal or rest else ""
            return TreeNode(f"{word} {point.stream}{condition}{self._named(point.place)}", _finding(point))
        if isinstance(point, PatternPointPlan):
            counted = ", its events count in what it starts" if point.inclusive else ""
            below = pattern_tree.tree(point.pattern, self.context.reads)
            return TreeNode(f"{word} pattern{self._named(point.place)}", f"{searches}{counted}", [below])
        if isinstance(point, CrontabPlan):
            crontabs = ", ".join(f"({', '.join(part.text for part in each)})" for each in point.crontabs)
            return TreeNode(f"{word} {crontabs}", f"by the clock of {self.context.options.zone}")
        assert isinstance(point, AfterPlan)
        return TreeNode(
            f"{word} after {words.period(point.period, self.text)}", "one heap of deadlines for all"
        )

    def _named(self, place: int | None) -> str:
        return "" if place is None else f" as {self.level.properties[place].name}"

    def _where(self, condition: Bound | None) -> str:
        parts = " and ".join(words.written(part, self.text) for part in conjuncts(condition))
        return f" where {parts}" if parts else ""


def _finding(point: EventPointPlan) -> str:
    """The way from an event to the partitions that it starts or ends."""
    if point.correlation is not None:
        return "found by hash"
    return "asked of each live partition" if point.asks_each else "asked once per event"


def _searched(point: PatternPointPlan) -> str:
    """The way from an event to the partitions whose pattern it may move."""
    atoms = atoms_of(point.pattern)
    if all(atom.correlation is not None for atom in atoms):
        return "found by hash"
    narrowed = all(atom.correlation is not None or atom.alone is not None for atom in atoms)
    return "each asked about an event that passes a filter" if narrowed else "each asked about each event"


# --- the facts ----------------------------------------------------------------------------------------------


def state(context: ContextPlan, plan: Plan, of_one: list[str]) -> list[str]:
    """The greatest number of partitions, and the state of each."""
    by_kind = prod(_most(level.kind) for level in context.levels)
    most = min(context.max_partitions, by_kind or context.max_partitions)
    beyond = "the oldest ends for a new one" if context.oldest_first else "further ones are refused"
    beyond = f", {beyond}" if most == context.max_partitions else ""
    shared = "what it folds, in a cell" if fits_cells(plan) else "an instance of the statement"
    held = [] if of_one == ["none"] else of_one
    return [
        f"at most {most:,} partition{'s' * (most > 1)}{beyond}",
        f"each {shared}",
        *(f"per partition: {line}" for line in held),
    ]


def _most(kind: KindPlan) -> int:
    """The greatest number of partitions of one level; 0 if it depends on the events."""
    if isinstance(kind, SpanPlan):
        return 1
    if isinstance(kind, HashedPlan):
        return kind.granularity
    return len(kind.labels) if isinstance(kind, CategoriesPlan) else 0


def cost(context: ContextPlan, plan: Plan) -> Iterator[str]:
    """The cost of finding the partitions of an event."""
    for level in context.levels:
        kind = level.kind
        if isinstance(kind, KeyedPlan | HashedPlan):
            yield "hash of the key" if isinstance(kind, KeyedPlan) else "hash"
        elif isinstance(kind, CategoriesPlan):
            yield f"{len(kind.labels)} conditions"
        elif isinstance(kind, OverlappingPlan):
            filters = [source.filter for source in plan.sources]
            found = len(filters) == 1 and correlation_of(filters[0])[0] is not None
            yield "partitions found by hash" if found else "every live partition"
        if not isinstance(kind, CategoriesPlan | HashedPlan) and isinstance(kind.end, EventPointPlan):
            yield from ["the end of each live partition"] * kind.end.asks_each


def endless(context: ContextPlan) -> list[str]:
    """Partitions that nothing ends."""
    return [f"a partition for every key ever met in '{level.name}'" for level in context.endless]
