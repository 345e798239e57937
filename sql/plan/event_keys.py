"""The keys by which the events of a query can be divided,
so that an engine for each key gives the rows of one for all: a rule over the fleet runs so.

    context        partitions by keys
    OVER           a window partitioned by keys, or analytic functions that all are
    GROUP BY       tumbling and hopping windows, or aggregates without a window, by keys
"""

from __future__ import annotations

from collections.abc import Mapping

from sql.errors import Span
from sql.plan.bound import Bound
from sql.plan.clauses import SourcePlan
from sql.plan.context_plan import KeyedPlan
from sql.plan.logical import Plan
from sql.plan.walk import slots_of

Keys = Mapping[str, tuple[Bound, ...]]
"""The expressions that make the key of an event, by its stream."""

ON_GRID = frozenset({"tumbling", "hopping"})
PARTITIONED = "divide it by a key: run it in a context 'partition by KEY from STREAM'"
START = Span(0, 1)


class NotKeyed(Exception):
    """The events of a query cannot be divided by keys: why, where in its text, and what to do."""

    def __init__(self, message: str, span: Span = START, hint: str = PARTITIONED) -> None:
        super().__init__(message)
        self.span, self.hint = span, hint


def keys_of(plan: Plan) -> Keys:
    """The keys of a rule's events. Raises NotKeyed."""
    _check_alone(plan)
    if plan.context is not None:
        return _keys_of_context(plan)
    _check_rows(plan)
    if len(plan.sources) != 1 or not is_stream(plan.sources[0]):
        raise NotKeyed("the rule does not read the events of one stream one by one")
    return {plan.sources[0].stream: _keys_of_query(plan)}


def _check_alone(plan: Plan) -> None:
    """Raise NotKeyed if other rules, or the events of other keys, have a part in what the rule does."""
    if plan.insert is not None or plan.acts is not None or plan.into_table is not None:
        raise NotKeyed(
            "the rule feeds other rules or acts on them", hint="write one query in place of several rules"
        )
    if relations := sorted(plan.relations):
        raise NotKeyed(f"the rule uses the table or window '{relations[0]}', which all keys share")
    if plan.lookups:
        raise NotKeyed("the rule asks an outside store", hint="join with data of the events themselves")
    if any(slot.kind in ("variable", "arrived") for slot in slots_of(plan)):
        raise NotKeyed("the rule reads a variable, which all keys share", hint="write its value")


def _keys_of_context(plan: Plan) -> Keys:
    assert plan.context is not None
    kind = plan.context.levels[0].kind
    if len(plan.context.levels) != 1 or not isinstance(kind, KeyedPlan) or kind.initiated or kind.end:
        raise NotKeyed(f"context '{plan.context.name}' has partitions that are not those of keys alone")
    listed = {item.stream: item.keys for item in kind.types}
    if beside := sorted({*plan.streams} - listed.keys()):
        raise NotKeyed(f"stream '{beside[0]}' has no key in context '{plan.context.name}'")
    if len(kind.types) != len(listed):
        raise NotKeyed(f"context '{plan.context.name}' names a stream twice")
    return listed


def _check_rows(plan: Plan) -> None:
    """Raise NotKeyed if rows of several keys are put in order, counted or compared with each other."""
    ordered = plan.order_by or plan.limit or plan.offset or plan.numberings
    apart = {spread.kind for spread in plan.spreads} & {"changes", "requests"}
    for found, what in (
        (plan.grouping_sets, "the rule has rows for several keys together (rollup, cube, grouping sets)"),
        (ordered, "the rule puts the rows of several keys in order"),
        (plan.distinct, "the rule compares the rows of several keys (DISTINCT)"),
        (plan.output is not None, "the rule limits the output over several keys"),
        (plan.hits, "the rule counts the events of several keys"),
        (plan.subqueries, "the rule has a subquery"),
        (apart, "the rule compares the rows of several keys"),
        (any(call.group_by is not None for call in plan.aggregates), "the rule groups by other keys as well"),
    ):
        if found:
            raise NotKeyed(what)


def is_stream(source: SourcePlan) -> bool:
    """True if the rows of a source are the events of a stream, each once: it has no windows of its own."""
    is_plain = source.pattern is None and source.recognize is None and source.relation is None
    return is_plain and not source.windows and source.lot is None and source.retained_rows is None


def _keys_of_query(plan: Plan) -> tuple[Bound, ...]:
    """The expressions by which the one stream of a query is divided."""
    window = plan.window
    if window is None:
        keys = plan.group_by or (plan.analytics[0].partition_by if plan.analytics else ())
    elif window.partition_by:
        keys = window.partition_by
    elif window.kind in ON_GRID:
        keys = plan.group_by
    else:
        raise NotKeyed(
            f"the {window.kind} window is one of all keys",
            window.span,
            "write OVER (PARTITION BY key) behind the window, or run the rule in a context",
        )
    for call in plan.analytics:
        if call.partition_by != keys:
            raise NotKeyed(
                f"{call.name}() reads events of several keys", call.span, "write OVER (PARTITION BY key)"
            )
    if not keys:
        raise NotKeyed("the rule has no key", hint="GROUP BY columns, or run it in a context")
    return keys
