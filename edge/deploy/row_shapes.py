"""The shape of the rows of a stream: structs with just the columns that are read, or
whole messages as dicts.

A struct is decoded several times faster and holds only what some rule reads. A stream gets dicts
where the whole message may be needed: a rule that selects `*` of an undeclared stream, that passes late or
erroneous events on, or that has the messages checked against declared types; and where rows come from several
sides (joins, `insert into`, split streams, memory, types that inherit others, windows that post statistics
instead of events).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from edge.deploy.stream_types import MQTT, stream_type
from edge.intake.codecs import row_class
from edge.intake.codecs.rows import attributes
from rules.compiled import CompiledRule
from sql.algebra.windows.catalog import WINDOWS
from sql.catalog.streams import Catalog
from sql.catalog.validation import columns_read, readers_of
from sql.plan.logical import Plan
from sql.plan.relation_plan import changed_by
from sql.rows import Shape

MakeRow = Callable[[dict[str, Any]], Any]


def struct_columns(catalog: Catalog, rules: Iterable[CompiledRule]) -> dict[str, frozenset[str]]:
    """The streams whose messages become structs, with the columns their rules read."""
    rules = list(rules)
    plans = [rule.plan for rule in rules]
    whole: set[str | None] = {plan.insert_into for plan in plans}
    for name, declared in catalog.streams.items():
        if declared.inherits:
            whole.update(catalog.lineage(name))
    for rule in rules:
        plan = rule.plan
        whole |= changed_by(plan)
        if takes_dicts(plan) or _shows_events(rule):
            whole.update(plan.streams)
    found = {}
    for name, readers in readers_of(plans).items():
        stream = catalog.streams.get(name)
        if name in whole or stream is None or stream.is_strict or stream_type(stream) != MQTT:
            continue
        columns = columns_read(readers, name)
        if columns is not None:
            found[name] = columns
    return found


def takes_dicts(plan: Plan) -> bool:
    """True if rows come from several sides, some are no events of the stream, or they may enter a
    relation."""
    if plan.acts is not None or plan.relations or plan.lookups:
        return True
    return len(plan.sources) > 1 or len(plan.streams) > 1 or bool(plan.subqueries) or _has_statistics(plan)


def _shows_events(rule: CompiledRule) -> bool:
    """True if whole events leave the rule: to late or error actions, or with their metadata."""
    loaded, options = rule.rule, rule.options
    return bool(loaded.late or loaded.error or options.send_error or options.send_meta_to_sink)


def _has_statistics(plan: Plan) -> bool:
    """True if a window posts rows of its own, which are dicts."""
    if any(source.recognize is not None for source in plan.sources):
        return True
    windows = (window for source in plan.sources for window in source.windows)
    return any(WINDOWS[window.name].role == "derived" for window in windows)


def shape_of(plan: Plan, structs: Mapping[str, frozenset[str]]) -> Shape:
    """The shape of the rows a rule reads."""
    return "struct" if plan.streams and all(stream in structs for stream in plan.streams) else "dict"


def row_maker(plan: Plan, shape: Shape) -> MakeRow | None:
    """Makes a row of the rule's shape of a dict, for what a snapshot retains."""
    if shape == "dict":
        return None
    return struct_maker(plan.columns(plan.streams[0]) or frozenset())


def struct_maker(columns: frozenset[str]) -> MakeRow:
    """Makes a row with these columns of a dict."""
    names, cls = attributes(columns), row_class(columns)

    def make(row: dict[str, Any]) -> Any:
        return cls(**{attribute: row.get(column) for column, attribute in names.items()})

    return make
