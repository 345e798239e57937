"""The text of the functions of a sampled rule's core."""

from __future__ import annotations

from collections import deque
from math import inf
from typing import Any

from sql.algebra.sample.compose import SampleParts
from sql.algebra.sample.instance import instance_class, write_locals
from sql.codegen.expression_code import NUMBER, Code
from sql.codegen.functions import DATA_ERRORS
from sql.codegen.loop import LoopWriter
from sql.codegen.source import SourceWriter
from sql.plan.bound import Bound, reads_clock
from sql.plan.logical import Plan
from sql.types import key_of


def write_core(source: SourceWriter, parts: SampleParts) -> None:
    """Write the classes and functions of a composition."""
    loop = _loop(source, parts)
    instance_class(source, "Instance", parts.slots)
    parts.content.write_helpers(loop)
    parts.window.write_helpers(loop)
    if parts.shown is not None:
        instance_class(source, "Shown", parts.shown.slots)
        parts.shown.write_helpers(loop)
        _write_fold(source, parts)
    for index, condition in enumerate(parts.filters):
        _write_enter(source, parts, index, condition)


def _loop(source: SourceWriter, parts: SampleParts) -> LoopWriter:
    names = parts.functions.names
    names.bound |= {"DATA_ERRORS": DATA_ERRORS, "key_of": key_of, "INFINITY": inf, "deque": deque}
    slots: dict[Any, Code] = {
        ("analytic", i): Code(f"fixed_{i}", True, True) for i in range(len(parts.plan.analytics))
    }
    slots["event_time", None] = Code("at", False, True, NUMBER)
    return parts.functions.loop(source, slots)


def _write_enter(source: SourceWriter, parts: SampleParts, index: int, condition: Bound | None) -> None:
    loop, window, is_timed = _loop(source, parts), parts.window, parts.is_timed
    with loop.block(f"def enter_{index}(core, rows, {'instants' if is_timed else 'at'}):"):
        if is_timed:
            loop.line("due = core.instances.due_ms")
        keyed = bool(window.plan.partition_by)
        if keyed:
            loop.line("get_part = core.instances.parts.get")
        else:
            loop.line("p = core.instances.whole")
            if not is_timed:
                window.write_instant(loop)
            write_locals(source, parts.locals)
            window.write_first(loop)
        if parts.content.is_bounded:
            loop.line("is_tight = not core.budget.takes(len(rows))")
        _write_events(parts, loop, index, condition)
        if not keyed:
            window.write_end(loop)


def write_each(source: SourceWriter, parts: SampleParts) -> None:
    """Write `enter_each`, the loop over the events of several rules that are alike, each with the core of its
    rule. The family keeps the next deadline, and gives an event that fails to its rule only."""
    loop = _loop(source, parts)
    with loop.block(f"def enter_each(family, cores, rows, {'instants' if parts.is_timed else 'at'}):"):
        if parts.is_timed:
            loop.line("due = family.earliest()")
        each = (
            "core, e, at in zip(cores, rows, instants)" if parts.is_timed else "core, e in zip(cores, rows)"
        )
        with loop.block(f"for {each}:"):
            if parts.is_timed:
                with loop.block("if at >= due:"):
                    loop.line("due = family.step(at)")
            loop.line("p = core.instances.whole")
            parts.window.write_instant(loop)
            write_locals(source, parts.locals)
            with source.attempt("family.again(core, e, at)", reads_error=False):
                _write_event(parts, loop, 0, parts.filters[0])


def _write_events(parts: SampleParts, loop: LoopWriter, index: int, condition: Bound | None) -> None:
    with loop.block("for e, at in zip(rows, instants):" if parts.is_timed else "for e in rows:"):
        if parts.is_timed:
            with loop.block("if at >= due:"):
                loop.line("due = core.step(at)")
            if not parts.window.plan.partition_by:
                parts.window.write_instant(loop)
            if parts.plan.analytics or any(map(reads_clock, parts.per_event())):
                loop.line(f"{loop.names.bind(loop.expressions.context, 'context')}.now_ms = at")
        if parts.plan.joins:
            sides = ", ".join("e" if place == index else "None" for place in range(len(parts.plan.sources)))
            loop.line(f"e = ({sides},)")
        with loop.source.attempt("core.owner.failed(e, error, at)"):
            _write_event(parts, loop, index, condition)


def _write_event(parts: SampleParts, loop: LoopWriter, index: int, condition: Bound | None) -> None:
    plan, window, content = parts.plan, parts.window, parts.content
    if plan.analytics:
        loop.line(f"{_fixed(plan)}= core.see(e, at)")
    loop.skip_unless(condition)
    if content.is_bounded:
        with loop.block("if is_tight:"):
            loop.line("core.budget.admit()")
    content.observe(loop, f"passed({index}, e, at)")
    keys = window.plan.partition_by
    if keys:
        loop.key(keys, "part")
        loop.line("p = get_part(part)")
        with loop.block("if p is None:"):
            loop.line("p = Instance(part)")
        window.write_instant(loop)
        write_locals(loop.source, parts.locals)
    window.write_before(loop)
    if plan.where is None or parts.shown is not None:
        content.write_enter(loop)
    else:
        with loop.block(f"if {loop.true(plan.where)}:", plan.where.span):
            content.write_enter(loop.inner())
        with loop.block("else:"):
            content.write_dropped(loop)
    if keys:
        with loop.block("if p.order is None:"):
            loop.line("core.instances.register(p)")
    content.observe(loop, "entered(p)")
    window.write_after(loop)
    if keys:
        window.write_end(loop)


def _write_fold(source: SourceWriter, parts: SampleParts) -> None:
    """The rows of one sample, through WHERE, into what it shows."""
    plan, shown, loop = parts.plan, parts.shown, _loop(source, parts)
    assert shown is not None
    with loop.block("def fold(core, p, events, trigger):"):
        write_locals(source, shown.locals)
        with loop.block("for event in events:"):
            loop.line("e = event.row")
            loop.line("at = event.time_ms")
            if plan.analytics:
                nothing = f"({'None, ' * len(plan.analytics)})"
                loop.line(f"{_fixed(plan)}= event.extra or {nothing}")
            with source.attempt("core.owner.failed(e, error, trigger)"):
                loop.skip_unless(plan.where)
                if parts.met_where is not None:
                    loop.line(f"{loop.names.bind(parts.met_where, 'met')}.note(at)")
                shown.write_enter(loop)
    loop.line("")


def _fixed(plan: Plan) -> str:
    """The locals of the values of analytic functions, as a target."""
    return "".join(f"fixed_{place}, " for place in range(len(plan.analytics)))
