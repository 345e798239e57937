"""Aggregate calls of sampled rules: which look at numbers alone, and what the others are fed with."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from sql.algebra.accumulators import SKIP
from sql.algebra.sample.text import Loop
from sql.codegen.functions import argument_text
from sql.plan.bound import AggregateCall


def is_numeric(call: AggregateCall) -> bool:
    """True if a call reads numbers only, of every event, so that they may wait to be folded."""
    is_plain = not call.distinct and call.filter is None and call.group_by is None
    return call.definition.of_numbers is not None and len(call.args) <= 1 and not call.constants and is_plain


def write_fed(loop: Loop, call: AggregateCall, name: str) -> None:
    """Assign what the accumulator of a call is fed with; SKIP where the aggregate's own filter keeps the
    event out."""
    text = argument_text(loop.expressions, call.definition, call.args)
    condition = "" if call.filter is None else loop.expressions.true(call.filter)
    loop.writer.reader.load(loop.source)
    span = call.args[0].span if call.args else call.span
    if call.filter is None:
        loop.source.line(f"{name} = {text}", span)
        return
    loop.line(f"{name} = {loop.names.bind(SKIP, 'SKIP')}")
    with loop.source.block(f"if {condition}:", call.filter.span):
        loop.source.line(f"{name} = {text}", span)


def unless_skipped(loop: Loop, call: AggregateCall, value: str) -> AbstractContextManager[None]:
    """A block in which the call's accumulator takes part; none where nothing keeps events out."""
    return nullcontext() if call.filter is None else loop.block(f"if {value} is not SKIP:")
