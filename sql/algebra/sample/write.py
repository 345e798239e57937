"""The text of the functions of a sampled rule's core."""

from __future__ import annotations

from collections import deque
from typing import Any

from sql.algebra.sample.parts import SampleParts
from sql.algebra.sample.text import LOCALS, Loop, instance_class
from sql.codegen.expression_code import NUMBER, Code
from sql.codegen.functions import FunctionSet
from sql.codegen.source import SourceWriter
from sql.plan.bound import Apply, Bound
from sql.plan.logical import Plan


def write_core(source: SourceWriter, made: SampleParts, functions: FunctionSet) -> None:
    """Write the classes and functions of a composition."""
    functions.names.reserve(LOCALS)
    functions.names.bound["deque"] = deque
    loop = _loop(source, made, functions)
    instance_class(source, "Instance", loop.kept)
    made.content.write_helpers(loop)
    made.window.write_helpers(loop)
    if made.shown is not None:
        loop.kept, loop.aliases = made.shown.slots, made.shown.aliases
        instance_class(source, "Shown", loop.kept)
        made.shown.write_helpers(loop)
        _write_fold(made, loop)
    for index, condition in enumerate(made.filters):
        loop = _loop(source, made, functions)
        _write_enter(made, loop, index, condition)
        made.common_lines = loop.common_lines


def _loop(source: SourceWriter, made: SampleParts, functions: FunctionSet) -> Loop:
    slots: dict[Any, Code] = {
        ("analytic", i): Code(f"fixed_{i}", True, True) for i in range(len(made.plan.analytics))
    }
    slots["event_time", None] = Code("at", False, True, NUMBER)
    loop = Loop(source, made.plan, functions, made.catalog, made.shape, slots)
    loop.kept = {**made.window.slots, **made.content.slots}
    loop.aliases = made.content.aliases
    loop.is_timed, loop.tap = made.is_timed, made.tap
    return loop


def _write_enter(made: SampleParts, loop: Loop, index: int, condition: Bound | None) -> None:
    is_timed, keyed = made.is_timed, bool(made.window.plan.partition_by)
    with loop.block(f"def enter_{index}(core, rows, {'instants' if is_timed else 'at'}):"):
        if is_timed:
            loop.line("due = core.instances.due_ms")
        tight = "is_tight = core.owner.is_tight(len(rows))"
        if keyed:
            if made.content.is_bounded:
                loop.line(tight)
            loop.line("get_part = core.instances.parts.get")
            _write_events(made, loop, index, condition)
            return
        loop.line("p = core.instances.whole")
        if not is_timed:
            made.window.write_instant(loop)
        with loop.hoisting():
            made.window.write_first(loop)
            if made.content.is_bounded:
                loop.line(tight)
            _write_events(made, loop, index, condition)
            made.window.write_end(loop)


def write_each(source: SourceWriter, made: SampleParts, functions: FunctionSet) -> None:
    """Write `enter_each`, the loop over the events of several rules that are alike, each with the core of its
    rule. The family keeps the next deadline, and gives an event that fails to its rule only."""
    functions.names.reserve(LOCALS)
    loop = _loop(source, made, functions)
    loop.opens = "family.open(core, p, at)"
    with loop.block(f"def enter_each(family, cores, rows, {'instants' if made.is_timed else 'at'}):"):
        if made.is_timed:
            loop.line("due = family.due_ms")
        each = "core, e, at in zip(cores, rows, instants)" if made.is_timed else "core, e in zip(cores, rows)"
        with loop.block(f"for {each}:"):
            if made.is_timed:
                with loop.block("if at >= due:"):
                    loop.line("due = family.step(at)")
            loop.line("p = core.instances.whole")
            made.window.write_instant(loop)
            with loop.source.attempt("family.again(core, e, at)", reads_error=False):
                _write_event(made, loop, 0, made.filters[0])


def _write_events(made: SampleParts, loop: Loop, index: int, condition: Bound | None) -> None:
    with loop.block("for e, at in zip(rows, instants):" if made.is_timed else "for e in rows:"):
        if made.is_timed:
            with loop.block("if at >= due:"):
                loop.line("due = core.step(at)")
            if not made.window.plan.partition_by:
                made.window.write_instant(loop)
            if made.plan.analytics or any(map(asks_the_time, made.per_event())):
                loop.line(f"{loop.names.bind(loop.functions.writer.context, 'context')}.now_ms = at")
        if made.plan.joins:
            sides = ", ".join("e" if place == index else "None" for place in range(len(made.plan.sources)))
            loop.line(f"e = ({sides},)")
        with loop.source.attempt("core.fail(e, error, at)"):
            _write_event(made, loop, index, condition)


def _write_event(made: SampleParts, loop: Loop, index: int, condition: Bound | None) -> None:
    plan, content = made.plan, made.content
    if plan.analytics:
        loop.line(f"{_fixed(plan)}= core.see(e, at)")
    loop.writer.skip_unless(condition)
    if content.is_bounded:
        with loop.block("if is_tight:"):
            loop.line("core.owner.admit()")
    loop.observed(f"passed({index}, e, at)")
    if made.window.plan.partition_by:
        loop.writer.key(made.window.plan.partition_by, "part")
        loop.line("p = get_part(part)")
        with loop.block("if p is None:"):
            loop.line("p = Instance(part)")
        made.window.write_instant(loop)
    made.window.write_before(loop)
    if plan.where is None or made.shown is not None:
        content.write_enter(loop)
    else:
        with loop.source.block(f"if {loop.writer.true(plan.where)}:", plan.where.span):
            content.write_enter(loop)
        with loop.block("else:"):
            content.write_dropped(loop)
    if made.window.plan.partition_by:
        with loop.block("if p.order is None:"):
            loop.line("core.instances.register(p)")
    loop.observed("entered(p)")
    made.window.write_after(loop)


def _write_fold(made: SampleParts, loop: Loop) -> None:
    """The rows of one sample, through WHERE, into what it shows."""
    plan, shown = made.plan, made.shown
    assert shown is not None
    with (
        loop.block("def fold(core, p, events, trigger):"),
        loop.hoisting(),
        loop.block("for event in events:"),
    ):
        loop.line("e = event.row")
        loop.line("at = event.time_ms")
        if plan.analytics:
            nothing = f"({'None, ' * len(plan.analytics)})"
            loop.line(f"{_fixed(plan)}= event.extra or {nothing}")
        loop.renew()
        with loop.source.attempt("core.fail(e, error, trigger)"):
            loop.writer.skip_unless(plan.where)
            if made.met_where is not None:
                loop.line(f"{loop.names.bind(made.met_where, 'met')}.note(at)")
            shown.write_enter(loop)
    loop.line("")


def _fixed(plan: Plan) -> str:
    """The locals of the values of analytic functions, as a target."""
    return "".join(f"fixed_{place}, " for place in range(len(plan.analytics)))


def asks_the_time(expression: Bound) -> bool:
    """True if an expression calls a function of the present instant."""
    return any(isinstance(node, Apply) and node.function.context for node in expression.walk())
