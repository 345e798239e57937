"""The compiled text of rules without a window: filter, analytic functions and projection, one row per event.

push(rows, now_ms, made)           the loop over events of one instant, whose rows it adds to `made`
push(rows, times, out)             that of event time, with an emission for each row
push_into(rows, rules, now_ms, out)   the loop of a family: rules that differ only in name and first condition
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from sys import intern
from typing import Any

from sql.algebra.derived.analytic import AnalyticStage
from sql.catalog.streams import Catalog
from sql.codegen.expression_code import Code
from sql.codegen.functions import DATA_ERRORS, FunctionSet
from sql.codegen.loop import LoopWriter
from sql.codegen.names import Names
from sql.codegen.output_rows import write_row
from sql.codegen.reader import RowReader
from sql.codegen.source import Generated, SourceWriter
from sql.emission import Emission
from sql.plan.bound import AnalyticCall, Bound, Const, Op, reads_clock
from sql.plan.logical import Plan
from sql.rows import Shape
from sql.types import key_of

PushInto = Callable[[Sequence[Any], Sequence[Any], int, list[Emission]], list[tuple[Any, Any]]]
"""Takes events, the rule each is for, the instant, and the list that results are added to;
returns the events that failed."""


class Same:
    """A value that equals only itself, and lives as long as what it is compared with."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def is_rowwise(plan: Plan) -> bool:
    """True if each event gives its own row or none, whatever came before it but for analytic functions."""
    if plan.mode != "delta" or len(plan.sources) != 1 or plan.context is not None:
        return False
    if not plan.sources[0].is_bare or plan.aggregates or plan.output or plan.selector == "rstream":
        return False
    if plan.subqueries or plan.relations or plan.into_table or plan.hits or plan.prevs or plan.orders_rows:
        return False
    # A loop over a batch in event time has no present instant.
    return plan.timestamp is None or not any(map(reads_clock, plan.expressions))


def conditions(plan: Plan) -> list[Bound]:
    """The conditions on an event, in order."""
    found = (plan.sources[0].filter, plan.where, plan.having)
    return [condition for condition in found if condition is not None]


class RowwiseText:
    """Writes the loops of one rule."""

    def __init__(
        self,
        plan: Plan,
        catalog: Catalog,
        shape: Shape,
        functions: FunctionSet,
        analytic: AnalyticStage | None,
    ) -> None:
        self.plan = plan
        self.catalog = catalog
        self.shape = shape
        self.functions = functions
        self.names = functions.names
        self.analytic = analytic
        self.is_timed = plan.timestamp is not None

    def _loop(self, writer: SourceWriter, names: Names) -> LoopWriter:
        slots: dict[Any, Code] = {("istream", None): Code("True", False, True, "boolean")}
        slots |= {("analytic", i): Code(f"x_{i}", True, True) for i in range(len(self.plan.analytics))}
        slots["event_time", None] = Code("now_ms", False, True, "number")
        reader = RowReader(names, self.catalog, self.shape, slots, joined=False)
        own = self.functions.writer
        return LoopWriter(writer, reader, own.warnings, own.context)

    # --- one rule -------------------------------------------------------------------------------------------

    def push(self, rule: str, fail: Callable[[Any, BaseException], None]) -> Generated:
        """The rule's own loop; `fail` is called for events that cannot be evaluated."""
        self.names.bound |= {"DATA_ERRORS": DATA_ERRORS, "Emission": Emission, "key_of": key_of}
        self.names.bound |= {"rule": rule, "fail": fail}
        plan, writer = self.plan, SourceWriter()
        header, arguments = (
            ("for e, now_ms in zip(rows, times):", "rows, times, out")
            if self.is_timed
            else ("for e in rows:", "rows, now_ms, made")
        )
        with writer.block(f"def push({arguments}):"):
            if plan.analytics:
                self._write_states(writer)
            with writer.block(header), writer.attempt("fail(e, error)"):
                self._write_event(self._loop(writer, self.names))
        return Generated(writer, self.names.bound)

    def _write_event(self, loop: LoopWriter) -> None:
        before, after = "made.append(", ")"
        if self.is_timed:
            before, after = "out.append(Emission(rule, now_ms, 'rows', [", "]))"
        if not self.plan.analytics:
            for condition in conditions(self.plan):
                loop.skip_unless(condition)
            write_row(loop, self.plan, before, after)
            return
        keep: list[str] = []
        for i, call in enumerate(self.plan.analytics):
            keep += self._write_analytic(loop, i, call)
        for condition in conditions(self.plan):
            loop.skip_unless(condition, keep)
        write_row(loop, self.plan, "row = ", "")
        for line in keep:
            loop.line(line)
        loop.line(f"{before}row{after}")

    # --- many rules at once ---------------------------------------------------------------------------------

    @cached_property
    def family(self) -> tuple[Hashable, Callable[[], PushInto], bool] | None:
        """The part shared by all rules that differ from this one in name and first condition alone; what
        compiles a loop for them; whether every event comes out of it.

        The filter index decides the first condition. What fails is done again by the rule's own code, which
        reports it. Each change of a rule makes the index anew: what is shared is found once, and the loop is
        written again for the first rule of each family, as texts that stay would spread the rules in memory.
        """
        if self.is_timed or self.plan.analytics:
            return None
        text, bound = self._family_loop()
        own = (self.functions.writer.warnings, self.functions.writer.context)
        if any(value is mine for value in bound.values() for mine in own):
            return None
        used = (
            (name, value if isinstance(value, frozenset) else Same(value)) for name, value in bound.items()
        )
        signature = intern(text.text), frozenset(used)
        return signature, lambda: Generated(*self._family_loop())["push_into"], not self._rest_of_conditions()

    def _family_loop(self) -> tuple[SourceWriter, dict[str, Any]]:
        """The loop of the family, and the values that its names stand for."""
        writer, names = SourceWriter(), Names()
        names.bound |= {"DATA_ERRORS": DATA_ERRORS, "Emission": Emission}
        loop = self._loop(writer, names)
        with writer.block("def push_into(rows, rules, now_ms, out):"):
            writer.line("failed = []")
            each, attempt = "for e, q in zip(rows, rules):", "failed.append((q, e))"
            with writer.block(each), writer.attempt(attempt, reads_error=False):
                loop.test(self._rest_of_conditions())
                write_row(loop, self.plan, "out.append(Emission(q.name, now_ms, 'rows', [", "]))")
            writer.line("return failed")
        return writer, names.bound

    def _rest_of_conditions(self) -> list[Bound]:
        """The conditions without the first part of the first of them."""
        first, *rest = conditions(self.plan)
        while isinstance(first, Op) and first.name == "and":
            first, *more = first.args
            rest = [*more, *rest]
        return rest

    # --- analytic functions ---------------------------------------------------------------------------------

    def _write_states(self, writer: SourceWriter) -> None:
        """Before the loop: the states of analytic functions that have only one."""
        for i, call in enumerate(self.plan.analytics):
            if not call.partition_by:
                self._write_state(writer, i, call, "()")

    def _write_analytic(self, loop: LoopWriter, i: int, call: AnalyticCall) -> list[str]:
        """Its value for an event; the lines that keep what the event changes,
        once it cannot fail any more."""
        args = [loop.atom(arg, f"x_{i}_{place}") for place, arg in enumerate(call.args)]
        when = "True"
        if call.when is not None:
            when = f"when_{i}"
            loop.line(f"{when} = {loop.true(call.when)}", call.when.span)
        if call.partition_by:
            loop.key(call.partition_by, f"key_{i}")
            self._write_state(loop.source, i, call, f"key_{i}")
        if is_plain_lag(call):
            return self._write_lag(loop, i, call, args[0], when)
        loop.line(f"x_{i} = state_{i}.step([{', '.join(args)}], {when})")
        return [f"state_{i}.keep()"]

    def _write_state(self, writer: SourceWriter, i: int, call: AnalyticCall, key: str) -> None:
        """The state of a function for a key."""
        assert self.analytic is not None
        states = self.names.bind(self.analytic.partitions[i], f"states_{i}")
        fresh = self.names.bind(self.analytic.fresh, "fresh_state")
        writer.line(f"state_{i} = {states}.get({key})")
        with writer.block(f"if state_{i} is None:"):
            writer.line(f"state_{i} = {states}[{key}] = {fresh}({call.name!r})")

    def _write_lag(self, loop: LoopWriter, i: int, call: AnalyticCall, value: str, when: str) -> list[str]:
        """`lag(x, n)` on the state's own values: what `Lag` does for a literal n and no default."""
        back = call.args[1] if len(call.args) > 1 else None
        n = back.value if isinstance(back, Const) else 1
        loop.line(f"past_{i} = state_{i}.values")
        loop.line(f"x_{i} = past_{i}[-{n}] if len(past_{i}) >= {n} else None")
        return [
            f"if {value} is not None{'' if when == 'True' else f' and {when}'}:",
            f"    past_{i}.append({value})",
            f"    if len(past_{i}) > {n}:",
            f"        past_{i}.popleft()",
        ]


def is_plain_lag(call: AnalyticCall) -> bool:
    """True if the call is `lag(x)` or `lag(x, n)` with a literal n."""
    if call.name != "lag" or len(call.args) > 2:
        return False
    back = call.args[1] if len(call.args) > 1 else Const(1)
    return isinstance(back, Const) and back.value.__class__ is int and back.value >= 1
