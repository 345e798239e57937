"""The text of an output row."""

from __future__ import annotations

from sql.codegen.expressions import Names
from sql.codegen.fast.reader import LoopWriter
from sql.codegen.functions import spread
from sql.plan.bound import Read
from sql.plan.plan import Criterion, ItemPlan, Plan
from sql.rows import as_dict
from sql.types import Descending, order_key


def row_text(loop: LoopWriter, plan: Plan, names: Names) -> str:
    """A dict display of the visible items, in order; columns it reads are loaded."""
    parts = []
    for item in plan.items:
        if item.invisible:
            continue
        if item.name is None:
            parts.append(_spread(loop, item, plan, names))
        elif isinstance(item.value, Read) and item.value.column is None:
            parts.append(f"{item.name!r}: {names.bind(as_dict, 'as_dict')}(e)")
        else:
            parts.append(f"{item.name!r}: {loop.value(item.value)}")
    return "{" + ", ".join(part for part in parts if part) + "}"


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
