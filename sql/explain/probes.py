"""The conditions of a rule as columns: plans that run beside the rule, and show the result of each condition
for each row.

A probe is a plan with the rule's sources, windows and groups, without the clause that it examines. It emits
rows of `c0`, `c1`, … (the result of each condition), the values the conditions compare, the keys of the
groups, and the start of the window.

    events   FILTER and WHERE on each event, before any window
    pairs    WHERE on the rows of a join
    samples  HAVING on the rows that the windows emit
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from sql.explain.words import written
from sql.plan.bound import Bound, Const, Op, Slot, conjuncts, slot_kinds
from sql.plan.clauses import Grouping, ItemPlan, SourcePlan
from sql.plan.context_plan import KeyedPlan
from sql.plan.logical import ChoicePlan, Plan
from sql.plan.rewriting import with_sources
from sql.record import Record, replace
from sql.types import Type

Stage = Literal["events", "pairs", "samples"]


class Condition(Record):
    """One condition of a clause.

    text       its source text
    operator   of a comparison; empty otherwise
    operands   the compared expressions: the text of each
    values     the value of each operand that is a constant; of the others the name of its column
    """

    clause: str
    text: str
    operator: str
    operands: tuple[str, ...]
    values: tuple[Any, ...]


class Shown(Record):
    """An operand whose value is a column of the probe's rows."""

    column: str


class Probe(Record):
    """A plan that shows conditions.

    source  the source whose events it examines; -1 for pairs and samples
    keys    the source texts of the groups' keys; columns `k0`, `k1`, …
    keeps   TRUE if its windows and groups have the rule's state, from which it can continue
    """

    stage: Stage
    plan: Plan
    conditions: tuple[Condition, ...]
    keys: tuple[str, ...] = ()
    source: int = -1
    keeps: bool = False


WINDOW_START = "w0"
"""The column of a probe of samples with the start of the window."""

OPERATORS = ("<", "<=", ">", ">=", "=", "!=", "between")


def probes(plan: Plan) -> list[Probe]:
    """The probes of a rule, in the order in which events pass them; for a statement that acts on a relation,
    of the events that trigger it."""
    if plan.trigger is not None or isinstance(plan.acts, ChoicePlan):
        # WHERE selects rows of the relation, so no part of it is about the event alone. Without a source
        # the statement acts when a partition starts.
        triggers = plan.sources[:1] if plan.trigger is None else [plan.trigger]
        of_events = [_of_events(plan, 0, source) for source in triggers]
        return [probe for probe in of_events if probe is not None]
    if plan.acts is not None or not plan.sources:
        return []
    of_sources = [_of_events(plan, at, source) for at, source in enumerate(plan.sources)]
    found = [probe for probe in of_sources if probe is not None]
    if len(plan.sources) > 1 and plan.where is not None:
        found.append(_of_pairs(plan))
    if _has_samples(plan):
        found.append(_of_samples(plan))
    return found


def _has_samples(plan: Plan) -> bool:
    """True if rows are emitted behind the events: by windows, groups or a join."""
    if plan.into_table is not None or any(source.recognize or source.pattern for source in plan.sources):
        return False
    is_shown = plan.window is not None or bool(plan.aggregates) or plan.having is not None
    return (is_shown or bool(plan.joins)) and "hit" not in slot_kinds(plan.having)


def _of_events(plan: Plan, at: int, source: SourcePlan) -> Probe | None:
    """The probe of one source's events; None if its rows are no events of a stream."""
    if source.pattern is not None or source.recognize is not None or source.retained_rows is not None:
        return None
    if source.relation is not None or not source.stream:
        return None
    is_only = len(plan.sources) == 1
    parts = [("FILTER", part) for part in conjuncts(source.filter)]
    reads_earlier = is_only and not source.keeps and source.filter is None
    if is_only and _is_of_an_event(plan.where, reads_earlier=reads_earlier):
        parts += [("WHERE", part) for part in conjuncts(plan.where)]
    own = [(clause, with_sources(part, {at: 0})) for clause, part in parts if "hit" not in slot_kinds(part)]
    keys = [(text, with_sources(key, {at: 0})) for text, key in _keys(plan) if is_only]
    conditions, items = _columns(plan, own, keys)
    bare = SourcePlan(source.stream, source.alias, columns=source.columns)
    made = Plan(
        plan.text,
        "delta",
        (bare,),
        items,
        plan.options,
        analytics=plan.analytics if is_only else (),
        prevs=plan.prevs if reads_earlier else (),
        **_event_time(plan, source.stream, own),
        reads={source.stream: plan.reads.get(source.stream)},
        relations=plan.relations,
        subqueries=plan.subqueries if is_only else (),
        uses_meta=plan.uses_meta,
        context=plan.context,
    )
    return Probe("events", made, conditions, _texts(keys), at)


def _event_time(plan: Plan, stream: str, parts: Sequence[tuple[str, Bound]]) -> dict[str, Any]:
    """The event-time fields of a probe of events: only if a condition reads it, because a late event passes
    or fails its filter like any other."""
    if "event_time" not in slot_kinds(*(part for _, part in parts)):
        return {}
    own = {name: value for name, value in plan.timestamps.items() if name == stream}
    column = own[stream][0] if stream in own else plan.timestamp
    return {"timestamp": column, "timestamps": own}


_OF_AN_EVENT = {"analytic", "meta", "event_time", "variable", "arrived", "hit", "subquery", "context"}


def _is_of_an_event(bound: Bound | None, *, reads_earlier: bool = False) -> bool:
    """True if an expression needs only the event and the state of analytic functions, or, where all events of
    the stream are there, earlier ones."""
    return slot_kinds(bound) <= (_OF_AN_EVENT | {"prev"} if reads_earlier else _OF_AN_EVENT)


def _of_pairs(plan: Plan) -> Probe:
    conditions, items = _columns(plan, [("WHERE", part) for part in conjuncts(plan.where)], [])
    rest = replace(
        plan, aggregates=(), group_by=(), grouping_sets=(), row_kind="plain", numberings=(), hits=()
    )
    keeps = not (plan.aggregates or plan.group_by or plan.numberings or plan.hits)
    return Probe("pairs", _bare(rest, items, where=None), conditions, keeps=keeps)


def _of_samples(plan: Plan) -> Probe:
    grouping = Grouping(plan.group_by, plan.grouping_sets)
    keys = [(text, grouping.shown(key)) for text, key in _keys(plan)]
    conditions, items = _columns(plan, [("HAVING", part) for part in conjuncts(plan.having)], keys)
    if plan.window is not None and not plan.window.is_each_event:
        items += (ItemPlan(WINDOW_START, Slot("window", "start", type=Type.INTEGER)),)
    bare = _bare(plan, items, where=plan.where)
    return Probe("samples", bare, conditions, _texts(keys), keeps=True)


def _bare(plan: Plan, items: tuple[ItemPlan, ...], where: Bound | None) -> Plan:
    """The plan up to HAVING: later clauses are left out, and SELECT has `items`."""
    selector: Literal["istream", "rstream"] = "rstream" if plan.selector == "rstream" else "istream"
    return replace(plan, items=items, where=where, having=None, spreads=(), order_by=(),
                   limit=None, offset=None, output=None, distinct=False, insert=None, numberings=(),
                   selector=selector, output_columns=None)  # fmt: skip


Keys = list[tuple[str, Bound]]
"""The keys that distinguish the groups of a rule, each with its text."""


def _keys(plan: Plan) -> Keys:
    """The keys of partitions and groups, as far as they depend on an event alone."""
    listed = plan.group_by or (plan.window.partition_by if plan.window is not None else ())
    groups = [(written(key, plan.text), key) for key in listed if _is_of_an_event(key)]
    return [*_of_partitions(plan), *groups]


def _of_partitions(plan: Plan) -> Keys:
    """The properties of a context's partitions that are values, such as its keys."""
    return [
        (f"context.{item.name}", Slot("context", (depth, place), type=item.type))
        for depth, level in enumerate(plan.context.levels if plan.context is not None else ())
        for place, item in enumerate(level.properties)
        if item.type not in (Type.OBJECT, Type.ANY) or isinstance(level.kind, KeyedPlan)
    ]


def _texts(keys: Keys) -> tuple[str, ...]:
    return tuple(text for text, _ in keys)


def _columns(
    plan: Plan, parts: Sequence[tuple[str, Bound]], keys: Keys
) -> tuple[tuple[Condition, ...], tuple[ItemPlan, ...]]:
    """The conditions, and the items with their results."""
    conditions: list[Condition] = []
    items = [ItemPlan(f"k{place}", key) for place, (_, key) in enumerate(keys)]
    for number, (clause, part) in enumerate(parts):
        items.append(ItemPlan(f"c{number}", part))
        operands = list(_operands(part))
        values: list[Any] = []
        for place, operand in enumerate(operands):
            if isinstance(operand, Const):
                values.append(operand.value)
            else:
                values.append(Shown(f"c{number}v{place}"))
                items.append(ItemPlan(f"c{number}v{place}", operand))
        operator = part.name if isinstance(part, Op) and part.name in OPERATORS else ""
        texts = tuple(written(operand, plan.text) for operand in operands)
        conditions.append(Condition(clause, written(part, plan.text), operator, texts, tuple(values)))
    if not items:
        items.append(ItemPlan("all", Const(True)))
    return tuple(conditions), tuple(items)


def _operands(condition: Bound) -> Iterator[Bound]:
    """The operands that a condition compares; those of a comparison below NOT."""
    if isinstance(condition, Op) and condition.name == "not":
        yield from _operands(condition.args[0])
    elif isinstance(condition, Op) and condition.name not in ("and", "or", "case"):
        yield from condition.args
