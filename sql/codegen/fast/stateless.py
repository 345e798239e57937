"""Rules without a window: filter, analytic functions and projection, one emission per event that passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sql.codegen.expressions import Code, ExpressionWriter, Names
from sql.codegen.fast.query import FastQuery
from sql.codegen.fast.reader import LocalReader, LoopWriter
from sql.codegen.fast.rows import write_row
from sql.codegen.fast.source import Generated, SourceWriter
from sql.codegen.functions import DATA_ERRORS
from sql.plan.bound import AnalyticCall, Bound, Const, Op
from sql.runtime.emission import Emission
from sql.types import key_of

Pour = Callable[[Sequence[Any], Sequence[Any], int, list[Emission]], list[tuple[Any, Any]]]
"""Takes events, the rule each is for, the instant, and the list that results are added to; gives back what failed."""


class StatelessQuery(FastQuery):
    """Filter and project."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.events = self.code["push"]
        self.failed = 0
        """Events of its family's loop that failed, since the filter index asked last."""

    def _write(self, writer: SourceWriter, names: Names) -> None:
        plan = self.plan
        slots: dict[Any, Code] = {("istream", None): Code("True", False, True, "boolean")}
        slots |= {("analytic", i): Code(f"x_{i}", True, True) for i in range(len(plan.analytics))}
        if not self.is_timed:
            slots["event_time", None] = Code("now_ms", False, True, "number")
        loop = self.loop_writer(writer, slots)
        header, arguments = ("for e, now_ms in zip(rows, times):", "rows, times") if self.is_timed else \
            ("for e in rows:", "rows, now_ms")  # fmt: skip
        with writer.block(f"def push({arguments}, out):"):
            if plan.analytics:
                self._write_states(writer)
            with writer.block(header):
                with writer.block("try:"):
                    self._write_event(loop)
                with writer.block("except DATA_ERRORS as error:"):
                    writer.line("fail(e, error)")

    def _write_event(self, loop: LoopWriter) -> None:
        plan = self.plan
        for i, call in enumerate(plan.analytics):
            self._write_analytic(loop, i, call)
        for condition in (plan.sources[0].filter, plan.where, plan.having):
            loop.skip_unless(condition)
        before, after = "out.append(Emission(rule, now_ms, 'rows', [", "]))"
        write_row(loop, plan, self.functions.names, before, after)

    # --- many rules at once -------------------------------------------------------------------------------------------

    def family(self) -> tuple[Any, Pour, bool] | None:
        """What all rules that differ from this one in name and first condition alone have in common; a loop for them;
        whether every event comes out of it.

        The filter index decides the first condition. What fails is done again by the rule's own code, which reports it.
        """
        if self.is_timed or self.plan.analytics:
            return None
        writer, names = SourceWriter(), Names()
        names.bound |= {"DATA_ERRORS": DATA_ERRORS, "Emission": Emission}
        own = (self.warnings, self.context)
        reader = LocalReader(names, self.catalog, self.shape, {("istream", None): Code("True", False, True, "boolean")})
        loop = LoopWriter(writer, reader, ExpressionWriter(reader, names, *own))
        with writer.block("def pour(rows, rules, now_ms, out):"):
            writer.line("failed = []")
            with writer.block("for e, q in zip(rows, rules):"):
                with writer.block("try:"):
                    for condition in self._rest_of_conditions():
                        loop.skip_unless(condition)
                    write_row(loop, self.plan, names, "out.append(Emission(q.name, now_ms, 'rows', [", "]))")
                with writer.block("except DATA_ERRORS:"):
                    writer.line("failed.append((q, e))")
            writer.line("return failed")
        if any(value is mine for value in names.bound.values() for mine in own):
            return None
        generated = Generated(writer, names.bound)
        bound = sorted(
            (name, value if isinstance(value, frozenset) else id(value)) for name, value in names.bound.items()
        )
        return (generated.text, tuple(bound)), generated["pour"], not self._rest_of_conditions()

    def _rest_of_conditions(self) -> list[Bound | None]:
        """The conditions without the first part of the first of them."""
        first, *rest = [
            condition for condition in (self.plan.sources[0].filter, self.plan.where, self.plan.having) if condition
        ]
        while isinstance(first, Op) and first.name == "and":
            first, *more = first.args
            rest = [*more, *rest]
        return list(rest)

    def again(self, row: Any, now_ms: int, out: list[Emission]) -> None:
        """An event that failed in the family's loop, which has counted it."""
        self.now_ms = self.context.now_ms = now_ms
        self.events((row,), now_ms, out)
        self.failed += len(self.errors)
        out += self.errors
        self.errors.clear()

    def _write_states(self, writer: SourceWriter) -> None:
        """Before the loop: the states of analytic functions that have only one."""
        assert self.analytic is not None
        names = self.functions.names
        fresh = names.bind(self.analytic.fresh, "fresh_state")
        for i, call in enumerate(self.plan.analytics):
            states = names.bind(self.analytic.partitions[i], f"states_{i}")
            if not call.partition_by:
                with writer.block(f"if () not in {states}:"):
                    writer.line(f"{states}[()] = {fresh}({call.name!r})")
                writer.line(f"state_{i} = {states}[()]")

    def _write_analytic(self, loop: LoopWriter, i: int, call: AnalyticCall) -> None:
        assert self.analytic is not None
        args = [loop.atom(arg, f"x_{i}_{place}") for place, arg in enumerate(call.args)]
        when = "True"
        if call.when is not None:
            when = f"when_{i}"
            text = loop.expressions.true(call.when)
            loop.reader.load(loop.source)
            loop.line(f"{when} = {text}", call.when.span)
        if call.partition_by:
            self._write_state(loop, i, call)
        if is_plain_lag(call):
            self._write_lag(loop, i, call, args[0], when)
        else:
            loop.line(f"x_{i} = state_{i}.step([{', '.join(args)}], {when})")

    def _write_state(self, loop: LoopWriter, i: int, call: AnalyticCall) -> None:
        assert self.analytic is not None
        names = self.functions.names
        states, fresh = (
            names.bind(self.analytic.partitions[i], f"states_{i}"),
            names.bind(self.analytic.fresh, "fresh_state"),
        )
        key_name = names.bind(key_of, "key_of")
        keys = [f"{key_name}({loop.value(node)})" for node in call.partition_by]
        key = keys[0] if len(keys) == 1 else f"({', '.join(keys)})"
        loop.line(f"key = {key}", call.partition_by[0].span)
        loop.line(f"state_{i} = {states}.get(key)")
        with loop.source.block(f"if state_{i} is None:"):
            loop.line(f"state_{i} = {states}[key] = {fresh}({call.name!r})")

    def _write_lag(self, loop: LoopWriter, i: int, call: AnalyticCall, value: str, when: str) -> None:
        """`lag(x, n)` on the state's own values: what `Lag.step` does for a literal n and no default."""
        back = call.args[1] if len(call.args) > 1 else None
        n = back.value if isinstance(back, Const) else 1
        loop.line(f"past = state_{i}.values")
        loop.line(f"x_{i} = past[-{n}] if len(past) >= {n} else None")
        with loop.source.block(f"if {value} is not None{'' if when == 'True' else f' and {when}'}:"):
            loop.line(f"past.append({value})")
            with loop.source.block(f"if len(past) > {n}:"):
                loop.line("past.popleft()")

    # --- driving ------------------------------------------------------------------------------------------------------

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        self.now_ms = self.context.now_ms = now_ms
        self.counts["events_in"] += len(rows)
        self.events(rows, now_ms, self.out)
        self.counts["rows_out"] += len(self.out)
        return self.take()

    def pour(self, rows: Sequence[Any], now_ms: int, out: list[Emission]) -> None:
        """`push` for the few events that the filter index leaves, with the results added to those of other rules."""
        self.now_ms = self.context.now_ms = now_ms
        counts, before = self.counts, len(out)
        counts["events_in"] += len(rows)
        self.events(rows, now_ms, out)
        counts["rows_out"] += len(out) - before
        if self.errors:
            out += self.errors
            self.errors.clear()

    def push_timed(self, rows: Sequence[Any], times: Sequence[int]) -> list[Emission]:
        self.counts["events_in"] += len(rows)
        errors = self.counts["errors"]
        self.events(rows, times, self.out)
        self.now_ms = times[-1]
        self.counts["rows_out"] += len(self.out) - (self.counts["errors"] - errors)
        return self.take()

    # --- state: only the analytic functions', which the base keeps ---------------------------------------------------

    def retained(self) -> int:
        return 0

    def _state(self) -> Any:
        return None

    def _put_back(self, state: Any, store: Any) -> None:
        return None


def is_plain_lag(call: AnalyticCall) -> bool:
    """Whether the call is `lag(x)` or `lag(x, n)` with a literal n."""
    if call.name != "lag" or len(call.args) > 2:
        return False
    back = call.args[1] if len(call.args) > 1 else Const(1)
    return isinstance(back, Const) and back.value.__class__ is int and back.value >= 1
