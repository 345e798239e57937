"""The detection of patterns of two events, their plans for `pairs`, and the text of the loop over the events
of one stream.

    push(pairs, rows, now, fail)    the matches of each event that completes some

An event is tested as the second one of searches that wait (`found`), then as the first one of a new search,
which waits for `wanted`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sql.algebra.pattern.filter_conditions import Parts, parts_of, true_of
from sql.algebra.pattern.listening import Binding
from sql.algebra.pattern.machine import Length
from sql.algebra.pattern.pairs import PairLoop, PairPlan
from sql.calendar.period import Period
from sql.codegen.expression_code import Code
from sql.codegen.functions import DATA_ERRORS, FunctionSet
from sql.codegen.loop import LoopWriter
from sql.codegen.source import Generated, SourceWriter
from sql.errors import NOWHERE
from sql.plan import pattern_plan as plans
from sql.plan.bound import Bound
from sql.plan.pattern_plan import OWN, FilterPlan, LengthPlan, PatternPlan, StepPlan, is_constant
from sql.types import key_of

Shape = tuple[FilterPlan, FilterPlan, LengthPlan | None, bool]
"""The first event, the second, the time between them, whether the second must not come."""


def pair_of(
    plan: PatternPlan, functions: FunctionSet, length_of: Callable[[LengthPlan], Length]
) -> PairPlan | None:
    """The pattern as one of two events; None for all others, and where no key leads from
    the second to the first."""
    shape = _shape(plan)
    if shape is None:
        return None
    first, second, span, is_absence = shape
    parts = parts_of(second.condition)
    if parts.left and not parts.rows:
        return None
    length = None if span is None else length_of(span)(())
    if span is not None and not _is_positive(length):
        return None
    text = PairText(functions, first, second, parts)
    return PairPlan(
        _tags(first.tag, second.tag, len(plan.tags)),
        second,
        {stream: text.loop(stream) for stream in plan.streams},
        functions.wanted_key(parts.tags, parts.nulls),
        true_of(parts.left, functions),
        length,
        is_absence,
    )


def _shape(plan: PatternPlan) -> Shape | None:
    match plan.root:
        case plans.FollowedByPlan((plans.EveryPlan(FilterPlan() as first, (), None), then), (None,)):
            found = _second(then)
        case _:
            return None
    if found is None or first.consume or found[0].consume or plan.suppress or plan.discard:
        return None
    is_tagged_twice = first.tag is not None and first.tag == found[0].tag
    return None if is_tagged_twice else (first, *found)


def _second(step: StepPlan) -> tuple[FilterPlan, LengthPlan | None, bool] | None:
    """The second event, the time between the two, and whether it must not come."""
    match step:
        case FilterPlan():
            return step, None, False
        case plans.WithinPlan(FilterPlan() as second, length, None):
            return (second, length, False) if is_constant(length) else None
        case plans.AllOfPlan(
            (plans.IntervalPlan(length), plans.AbsentPlan(FilterPlan() as second))
            | (plans.AbsentPlan(FilterPlan() as second), plans.IntervalPlan(length))
        ):
            return (second, length, True) if is_constant(length) else None
    return None


def _is_positive(length: Period | None) -> bool:
    return length is not None and (length.millis > 0 or length.months > 0)


def _tags(first: int | None, second: int | None, width: int) -> Callable[[Any, Any], Binding]:
    """The function that makes the tags of two events, from their places."""
    names = ["None"] * width
    for tag, name in ((first, "a"), (second, "b")):
        if tag is not None:
            names[tag] = name
    source = SourceWriter()
    with source.block("def tags(a, b):"):
        source.line(f"return ({''.join(f'{name}, ' for name in names)})")
    made: Callable[[Any, Any], Binding] = Generated(source, {})["tags"]
    return made


# --- text ---------------------------------------------------------------------------------------------------


class PairText:
    """Writes the loop over the events of a stream. `parts`: those of the second event's condition."""

    def __init__(self, functions: FunctionSet, first: FilterPlan, second: FilterPlan, parts: Parts) -> None:
        self.functions = functions
        self.first = first
        self.second = second
        self.parts = parts
        functions.names.bound |= {
            "DATA_ERRORS": DATA_ERRORS,
            "context": functions.reader.context,
            "partition": functions.reader.partition,
        }

    def loop(self, stream: str) -> PairLoop:
        """The loop over the events of a stream that has the first event, the second, or both."""
        source = SourceWriter()
        with source.block("def push(pairs, rows, now, fail):"):
            source.line("get, begin, end = pairs.waiting.by_key.found.get, pairs.begin, pairs.end")
            source.line("out = []")
            with source.block("for e in rows:"):
                with source.attempt("fail(e, error)", "continue"):
                    self._write_event(source, stream)
                with source.block("if matches:"):
                    source.line("out.append(matches)")
            source.line("return out")
        push: PairLoop = self.functions.generate(source)["push"]
        return push

    def _loop(self, source: SourceWriter, row: int | None) -> LoopWriter:
        """A writer of expressions over the event, which they read as its own row or by a tag."""
        slots: dict[Any, Code] = {("event_time", None): Code("context.now_ms", False, False, "number")}
        return self.functions.loop(source, slots, rows={} if row is None else {row: "e"})

    def _write_event(self, source: SourceWriter, stream: str) -> None:
        loop, parts, first = self._loop(source, OWN), self.parts, self.first
        is_first, is_second = stream == first.stream, stream == self.second.stream
        source.line("found = None")
        begins = "True" if not is_first or first.condition is None else loop.true(first.condition)
        if is_second and parts.alone is not None:
            with source.block(f"if {loop.true(parts.alone)}:", parts.alone.span):
                self._write_key(loop.inner(), parts.rows, "found", "get({})")
        elif is_second:
            self._write_key(loop, parts.rows, "found", "get({})")
        if is_first:
            with source.block(f"if {begins}:", NOWHERE if first.condition is None else first.condition.span):
                source.line("wanted = None")
                self._write_key(self._loop(source, first.tag), parts.tags, "wanted", "{}")
                source.line("matches = begin(e, wanted, found, now)")
        with source.block("elif found is not None:" if is_first else "if found is not None:"):
            source.line("matches = end(e, found)")
        with source.block("else:"):
            source.line("continue")

    def _write_key(self, loop: LoopWriter, key: Sequence[Bound], name: str, use: str) -> None:
        """Assign what a key finds, or the key; nothing where one of its values is NULL that may not be."""
        nulls = self.parts.nulls
        values = [loop.atom(node, f"{name}_{i}") for i, node in enumerate(key)]
        make = loop.expressions.names.bind(key_of, "key_of")
        parts = [
            f"{make}({value})" if may_be_null else f"{value} if {value}.__class__ is str else {make}({value})"
            for value, may_be_null in zip(values, nulls, strict=True)
        ]
        is_one = len(parts) == 1 and not any(nulls)
        text = parts[0] if is_one else f"({''.join(f'({part}),' for part in parts)})"
        sure = [value for value, may_be_null in zip(values, nulls, strict=True) if not may_be_null]
        with loop.source.block(f"if {' and '.join(f'{value} is not None' for value in sure) or 'True'}:"):
            loop.line(f"{name} = {use.format(text)}")
