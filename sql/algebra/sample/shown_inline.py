"""The row of a window that is shown with every event, written into the loop.

Only where there is one row, made of aggregates and bounds alone: SLIDINGWINDOW without groups.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sql.algebra.sample.running import Running
from sql.algebra.sample.sliding import Sliding
from sql.algebra.sample.text import Loop
from sql.codegen.expressions import NUMBER, Code
from sql.codegen.rows import write_row
from sql.emission import Emission
from sql.plan.bound import Apply, Read, Slot

if TYPE_CHECKING:
    from sql.algebra.sample.compose import Composition


def inline_look(made: Composition, rule: str) -> Callable[[Loop], None] | None:
    """What writes the row of the event at hand; None where a look is more than that."""
    plan, content = made.plan, made.content
    if not isinstance(content, Running) or not isinstance(made.window, Sliding) or plan.window is None:
        return None
    several = plan.group_by or plan.numberings or plan.order_by or plan.spreads or plan.hits or plan.distinct
    limited = plan.limit is not None or plan.offset is not None or plan.options.emit_empty or plan.window.delay_ms
    shown = [*(item.value for item in plan.items), *([] if plan.having is None else [plan.having])]
    if several or limited or plan.window.partition_by or any(map(_reads_more, shown)):
        return None

    def write(loop: Loop) -> None:
        _write(loop, made, content, rule)

    return write


def _reads_more(expression: Any) -> bool:
    return any(
        isinstance(node, Read)
        or (isinstance(node, Apply) and node.function.context)
        or (isinstance(node, Slot) and node.kind == "analytic")
        for node in expression.walk()
    )


def _write(loop: Loop, made: Composition, content: Running, rule: str) -> None:
    plan = made.plan
    assert plan.window is not None
    names, calls = loop.names, range(len(plan.aggregates))
    if plan.where is not None:
        loop.line(f"g = {loop.own('groups')}.get(())")
        with loop.block("if g is None:"):
            loop.line("continue")
    with loop.block("if g.acc is None:"):
        for place in calls:
            loop.line(f"v_{place} = {content.result(place)}")
    if plan.aggregates:
        with loop.block("else:"):
            loop.line(f"{''.join(f'v_{place}, ' for place in calls)}= results(g)")
    now = Code("at", False, True, NUMBER)
    slots: dict[Any, Code] = {("aggregate", place): Code(f"v_{place}", True, True) for place in calls}
    slots |= {("window", "end"): now, ("window", "trigger"): now, ("event_time", None): now}
    slots["window", "start"] = Code(f"(at - {plan.window.length_ms})", False, True, NUMBER)
    inner = Loop(loop.source, plan, loop.functions, loop.catalog, loop.shape, slots)
    with loop.block("try:"):
        inner.writer.skip_unless(plan.having)
        out = f"out.append({names.bind(Emission, 'Emission')}(rule, at, 'rows', ["
        write_row(inner.writer, plan, out, "]))")
        loop.line("counts['rows_out'] += 1")
    with loop.block("except DATA_ERRORS as error:"):
        loop.line("core.owner.failed(g.entries[0], error, at)")
