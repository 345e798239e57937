"""Fields of the events that calls return: `last(*).id`, `maxby(v).id`, `window(*)[0].id`, `prev(1, e).id`."""

from __future__ import annotations

from sql.binder.binding import Binding
from sql.errors import Span
from sql.plan.bound import AggregateCall, Apply, Bound, Op, Read, Slot
from sql.types import Type


def check_field(binder: Binding, base: Bound, name: str, span: Span) -> None:
    """Report a field that the event of a call lacks by its declaration."""
    if not binder.kind.epl:
        return
    source = _source_of(binder, base)
    columns = _tags(binder, base) if source is None else binder.scope.sources[source].columns
    if columns is not None and name not in columns:
        binder.scope.unknown(name, span, source)


def _tags(binder: Binding, bound: Bound) -> tuple[str, ...] | None:
    """The tags of which a call returns the events, as one row."""
    if not isinstance(bound, Slot) or bound.kind != "aggregate":
        return None
    return binder.tags_shown(binder.aggregates[int(bound.key)])


def _source_of(binder: Binding, bound: Bound) -> int | None:
    """The source of which a call returns an event, or the list of events that an element is read from."""
    if isinstance(bound, Op) and bound.name == "index" and bound.args[0].type is Type.ARRAY:
        return _source_of(binder, bound.args[0])
    if not isinstance(bound, Slot):
        return None
    if bound.kind == "prev":
        return _whole(binder, binder.prevs[int(bound.key)].value)
    return _shown(binder, binder.aggregates[int(bound.key)]) if bound.kind == "aggregate" else None


def _shown(binder: Binding, call: AggregateCall) -> int | None:
    if not call.definition.needs_event:
        return _whole(binder, call.args[0]) if call.definition.whole_row and call.args else None
    if isinstance(call.shows, tuple) or binder.scope.sources[call.shows or 0].tag is not None:
        return None
    return call.shows or 0


def _whole(binder: Binding, value: Bound | None) -> int | None:
    """The source whose whole event a value is."""
    is_star = isinstance(value, Apply) and value.function.name == "row_value"
    read = value.args[0] if isinstance(value, Apply) and is_star and len(value.args) == 1 else value
    if not isinstance(read, Read) or read.column is not None:
        return None
    tag = binder.scope.sources[read.source].tag
    return read.source if tag is None or (tag == "event" and not is_star) else None
