"""Fields of the events and rows that calls return: `last(*).id`, `maxby(v).id`, `window(*)[0].id`,
`prev(1, e).id`, `(select * from W).firstOf().id`; that variables and columns hold;
and of the elements that a lambda reads: `x => x.id`.

A list stands for its elements: what is known of them holds for each that an index or a method takes.
"""

from __future__ import annotations

from collections.abc import Sequence

from sql.aggregates.list_methods import KEEPING, LIST_METHODS
from sql.binder.binding import Binding, Elements
from sql.binder.scope import Scope
from sql.errors import Span, did_you_mean
from sql.plan.bound import AggregateCall, Apply, Bound, Enumerate, LambdaRead, Op, Read, Slot
from sql.plan.clauses import ItemPlan
from sql.plan.logical import SubqueryKind
from sql.syntax import ColumnType
from sql.types import Type


def check_field(binder: Binding, base: Bound, name: str, span: Span) -> None:
    """Report a field that an event or row lacks by its declaration."""
    tags = _tags(binder, base)
    if tags is None:
        check_name(binder, elements_of(binder, base), name, span)
    elif name not in tags:
        binder.scope.unknown(name, span)


def check_name(binder: Binding, elements: Elements | None, name: str, span: Span) -> None:
    """Report a name that is no field of the elements."""
    if isinstance(elements, int):
        columns = binder.scope.sources[elements].columns
        if columns is not None and name not in columns:
            binder.scope.unknown(name, span, elements)
    elif elements is not None and name not in elements:
        has = f"rows with {', '.join(elements[:12])}" if elements else "plain values, which have no columns"
        message = f"unknown column '{name}': these are {has}"
        binder.problems.error("B201", message, span, did_you_mean(name, elements))


def elements_of(binder: Binding, bound: Bound) -> Elements | None:
    """The source or the columns of an event, or of the elements of a list; None where they are not known."""
    if isinstance(bound, Slot):
        return _of_slot(binder, bound)
    if isinstance(bound, LambdaRead):
        return None if bound.property else binder.parameters[-1 - bound.depth].elements
    if isinstance(bound, Enumerate):
        keeps = LIST_METHODS[bound.name].keeps or _gives_elements(bound)
        return elements_of(binder, bound.base) if keeps else None
    if isinstance(bound, Apply) and bound.function in KEEPING:
        return elements_of(binder, bound.args[0])
    if isinstance(bound, Op) and bound.name in ("index", "slice") and bound.args[0].type is Type.ARRAY:
        array = bound.args[0]
        # what a declared array holds, the field's own binding reports
        return _held(binder, array) if isinstance(array, Read) else elements_of(binder, array)
    if isinstance(bound, Read) and bound.column is None:
        return bound.source if bound.type is Type.ARRAY else None
    if isinstance(bound, Read):
        return _held(binder, bound) or _declared(binder.scope.declaration(bound))
    return None


def columns_held(binder: Binding, bound: Bound) -> tuple[str, ...] | None:
    """The columns of the event that a value is, or of the events in it; None where they are not known, or it
    holds none. Another statement may insert more columns into a stream that `insert into` has made."""
    tags, whole = _tags(binder, bound), _whole(binder, bound)
    if tags is not None:
        return tags
    elements = elements_of(binder, bound) if whole is None else whole
    if not isinstance(elements, int):
        return elements or None
    source = binder.scope.sources[elements]
    stream = binder.scope.site.catalog.streams.get(source.stream)
    grows = stream is not None and stream.derived
    return None if source.columns is None or grows else tuple(source.columns)


def _held(binder: Binding, read: Read) -> tuple[str, ...] | None:
    """The columns of the events in a column, as its declaration or the statements that insert it say."""
    return binder.scope.sources[read.source].fields.get(read.column or "")


def row_columns(scope: Scope, kind: SubqueryKind, items: Sequence[ItemPlan]) -> tuple[str, ...] | None:
    """The columns of the rows of a subquery in its `scope`, or of the events that its one column holds; none
    where it holds plain values. None where they are not known."""
    shown = [item for item in items if not item.invisible]
    if kind not in ("row", "rows"):
        type_of = shown[0].value.type
        is_plain = not Type.OBJECT.accepts(type_of) and type_of is not Type.ARRAY
        return () if is_plain else _spread(scope, shown[0])
    found: dict[str, None] = {}
    for item in shown:
        columns = (item.name,) if item.name is not None else _spread(scope, item)
        if columns is None:
            return None
        found |= dict.fromkeys(columns)
    return tuple(found)


def _spread(scope: Scope, item: ItemPlan) -> tuple[str, ...] | None:
    """The columns that a whole event becomes."""
    if not isinstance(item.value, Read) or item.value.column is not None:
        return None
    columns = scope.sources[item.value.source].columns
    return None if columns is None else tuple(name for name in columns if name not in item.excluded)


def _declared(array: ColumnType | None) -> tuple[str, ...] | None:
    """The fields of the structs in an array, where they are declared."""
    element = None if array is None else array.element
    return None if element is None else tuple(column.name for column in element.fields) or None


def _gives_elements(method: Enumerate) -> bool:
    """True for a method of `x => x`."""
    body = method.body
    return isinstance(body, LambdaRead) and body.property is None and body.depth == method.parameters - 1


def _tags(binder: Binding, bound: Bound) -> tuple[str, ...] | None:
    """The tags of which a call returns the events, as one row."""
    if not isinstance(bound, Slot) or bound.kind != "aggregate" or not binder.kind.epl:
        return None
    return binder.tags_shown(binder.aggregates[int(bound.key)])


def _of_slot(binder: Binding, bound: Slot) -> Elements | None:
    if bound.kind == "subquery":
        return binder.scope.subquery_rows.get(int(bound.key))
    if bound.kind in ("variable", "arrived"):
        return _of_variable(binder.scope, str(bound.key))
    if not binder.kind.epl:  # eKuiper reads NULL
        return None
    if bound.kind == "prev":
        return _whole(binder, binder.prevs[int(bound.key)].value)
    return _shown(binder, binder.aggregates[int(bound.key)]) if bound.kind == "aggregate" else None


def _of_variable(scope: Scope, name: str) -> tuple[str, ...] | None:
    """The columns of the event that a variable holds, or of the events in it."""
    catalog = scope.site.catalog
    stream = catalog.streams.get(catalog.variables[name].event)
    return None if stream is None or stream.columns is None else tuple(stream.columns)


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
