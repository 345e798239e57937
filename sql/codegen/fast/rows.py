"""The text of an output row."""

from __future__ import annotations

from sql.codegen.expressions import Names
from sql.codegen.fast.reader import LoopWriter
from sql.codegen.functions import spread
from sql.errors import NOWHERE, Span
from sql.plan.bound import Read
from sql.plan.logical import Criterion, ItemPlan, Plan
from sql.rows import as_dict
from sql.types import Descending, order_key


def write_row(loop: LoopWriter, plan: Plan, names: Names, before: str, after: str) -> None:
    """A statement around a dict display of the visible items: each on its own line, so that errors name their item."""
    parts = _parts(loop, plan, names)
    whole = parts[0][1] if parts else NOWHERE
    if len(parts) <= 1:
        loop.line(f"{before}{{{''.join(text for text, _ in parts)}}}{after}", whole)
        return
    loop.line(f"{before}{{", whole)
    for text, span in parts:
        loop.line(f"    {text},", span)
    loop.line(f"}}{after}", whole)


def _parts(loop: LoopWriter, plan: Plan, names: Names) -> list[tuple[str, Span]]:
    """The visible items as entries of a dict display, each with its place."""
    parts = []
    for item in plan.items:
        if item.invisible:
            continue
        if item.name is None:
            text = _spread(loop, item, plan, names) or "**{}"
        elif isinstance(item.value, Read) and item.value.column is None:
            whole = loop.expressions.value(item.value)
            loop.reader.load(loop.source)
            text = f"{names.bind(as_dict, 'as_dict')}({whole.text})"
            text = f"{item.name!r}: {f'None if {whole.text} is None else {text}' if whole.nullable else text}"
        else:
            text = f"{item.name!r}: {loop.value(item.value)}"
        parts.append((text, item.value.span))
    return parts


def _spread(loop: LoopWriter, item: ItemPlan, plan: Plan, names: Names) -> str:
    excluded = frozenset((*item.excluded, "$meta"))
    if isinstance(item.value, Read):
        declared = plan.sources[item.value.source].columns
        if declared is not None:
            source = item.value.source
            reads = [f"{name!r}: {loop.reader.read(source, name).text}" for name in declared if name not in excluded]
            loop.reader.load(loop.source)
            return ", ".join(reads)
    return f"**{names.bind(spread, 'spread')}({loop.value(item.value)}, {names.bind(excluded, 'excluded')})"


def criteria_text(loop: LoopWriter, criteria: tuple[Criterion, ...], names: Names) -> str:
    """The sort key of ORDER BY: NULLs last unless said otherwise."""
    order, down = names.bind(order_key, "order_key"), names.bind(Descending, "Descending")
    parts = []
    for item in criteria:
        value = loop.value(item.value)
        key = f"{down}({order}({value}))" if item.descending else f"{order}({value})"
        parts.append(f"(({value}) is {'not ' if item.nulls_first else ''}None, {key})")
    return f"({', '.join(parts)},)" if parts else "None"
