"""Write the text of an output row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sql.codegen.loop import LoopWriter
from sql.codegen.names import Names
from sql.codegen.support import spread
from sql.errors import NOWHERE, Span
from sql.plan.bound import Bound, Read
from sql.plan.clauses import Criterion, ItemPlan
from sql.plan.logical import Plan
from sql.rows import as_dict, as_dicts
from sql.types import Type, order_key, order_key_down

Columns = Mapping[str, Type] | None


def write_row(loop: LoopWriter, plan: Plan, before: str, after: str) -> None:
    """A statement around a dict display of the visible items: each on its own line, so that
    errors name their item."""
    write_items(loop, plan.items, plan.side_columns, before, after)


def write_items(
    loop: LoopWriter, items: Sequence[ItemPlan], columns: Sequence[Columns], before: str, after: str
) -> None:
    """The same for items over sources with these `columns`; None: not known."""
    parts = _parts(loop, items, columns, loop.expressions.names)
    whole = parts[0][1] if parts else NOWHERE
    if len(parts) <= 1:
        loop.line(f"{before}{{{''.join(text for text, _ in parts)}}}{after}", whole)
        return
    loop.line(f"{before}{{", whole)
    for text, span in parts:
        loop.line(f"    {text},", span)
    loop.line(f"}}{after}", whole)


def _parts(
    loop: LoopWriter, items: Sequence[ItemPlan], columns: Sequence[Columns], names: Names
) -> list[tuple[str, Span]]:
    """The visible items as entries of a dict display, each with its place."""
    parts = []
    for item in items:
        if item.invisible:
            continue
        if item.name is None:
            text = _spread(loop, item, columns, names) or "**{}"
        elif isinstance(item.value, Read) and item.value.column is None:
            code = loop.expressions.value(item.value)
            loop.reader.load(loop.source)
            kind = as_dicts if item.value.type is Type.ARRAY else as_dict
            whole = f"{names.bind(kind, kind.__name__)}({code.text})"
            text = f"{item.name!r}: {f'None if {code.text} is None else {whole}' if code.nullable else whole}"
        else:
            text = f"{item.name!r}: {loop.value(item.value)}"
        parts.append((text, item.value.span))
    return parts


def _spread(loop: LoopWriter, item: ItemPlan, columns: Sequence[Columns], names: Names) -> str:
    excluded = frozenset((*item.excluded, "$meta"))
    if isinstance(item.value, Read) and item.value.column is None:
        declared = columns[item.value.source]
        if declared is not None:
            source = item.value.source
            reads = [
                f"{name!r}: {loop.reader.read(source, name).text}"
                for name in declared
                if name not in excluded
            ]
            loop.reader.load(loop.source)
            return ", ".join(reads)
    return f"**{names.bind(spread, 'spread')}({loop.value(item.value)}, {names.bind(excluded, 'excluded')})"


def sort_key_text(
    value: Callable[[Bound], str], names: Names, criteria: Sequence[Criterion], *, nulls_lowest: bool
) -> str:
    """The sort key of ORDER BY, of the texts of its values. NULL is lowest (EPL) or last in either direction
    (eKuiper), if NULLS FIRST or LAST is absent."""
    up, down = names.bind(order_key, "order_key"), names.bind(order_key_down, "order_key_down")
    parts = []
    for item in criteria:
        text = value(item.value)
        key = f"{down if item.descending else up}({text})"
        if not nulls_lowest or item.nulls_first is not None:
            key = f"(({text}) is {'not ' if item.nulls_first else ''}None, {key})"
        parts.append(key)
    return f"({', '.join(parts)},)" if parts else "None"


def criteria_text(loop: LoopWriter, criteria: Sequence[Criterion], *, nulls_lowest: bool) -> str:
    """The sort key of ORDER BY in a loop."""
    return sort_key_text(loop.value, loop.expressions.names, criteria, nulls_lowest=nulls_lowest)
