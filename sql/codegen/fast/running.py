"""Windows that are looked at with every event, without groups; `every_event` holds the two there are.

What enters is added to running aggregates and what leaves is taken out, both as statements in the loop
(`sql.aggregates.inline`). They are exact for plain numbers and NULL. Any other value, or one that cannot be evaluated,
is left to the operators: the query builds one, shows it the events in the window, and lets it work until the window
holds only plain values again.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any

from sql.aggregates.inline import INLINE, SCALE, SHIFT, united
from sql.aggregates.state import decode
from sql.codegen.expressions import Code, Names
from sql.codegen.fast.arguments import Argument
from sql.codegen.fast.query import FastQuery
from sql.codegen.fast.reader import LoopWriter
from sql.codegen.fast.rows import write_row
from sql.codegen.fast.source import SourceWriter
from sql.plan.bound import Bound, Read
from sql.runtime.emission import Emission
from sql.runtime.state import pack_row


class RunningQuery(FastQuery):
    """Base: the loop, and the way to the operators and back."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        self.window: deque[Any] = deque()
        """The events in the window."""
        self.times: deque[int] = deque()
        """Their times, where they matter."""
        self.kept: dict[str, Any] = {}
        self.operators: Any = None
        self.plain_since = 0
        super().__init__(*args, **keywords)
        self.restart()

    @property
    def arguments(self) -> list[Argument]:
        """The distinct arguments of the plan's aggregates."""
        by_node: dict[Bound, list[str]] = {}
        for call in self.plan.aggregates:
            if call.args:
                by_node.setdefault(call.args[0], []).append(call.definition.name)
        return [Argument(node, place, names) for place, (node, names) in enumerate(by_node.items())]

    def restart(self) -> None:
        """An empty window."""
        self.window, self.times, self.kept = deque(maxlen=self.size), deque(), {}
        for argument in self.arguments:
            for name in argument.kept:
                is_queue = name.split("_")[0] in ("values", "scaled", "low", "high")
                size = self.size if name.startswith(("values", "scaled")) else None
                self.kept[name] = deque(maxlen=size) if is_queue else 0

    # --- code ---------------------------------------------------------------------------------------------------------

    def _write(self, writer: SourceWriter, names: Names) -> None:
        arguments = self.arguments
        loop = self.loop_writer(writer, self.slots(arguments))
        kept = [name for argument in arguments for name in argument.kept]
        with writer.block("def push(events, now_ms, out):"):
            writer.line("window, times, kept = q.window, q.times, q.kept")
            for name in kept:
                writer.line(f"{name} = kept[{name!r}]")
            writer.line("odd = None")
            self.write_start(writer, arguments)
            with writer.block("for e, now_ms in events:" if self.is_timed else "for e in events:"):
                self._write_event(loop, arguments)
            self.write_end(writer)
            for name in kept:
                if not name.startswith(("values", "scaled", "low", "high")):
                    writer.line(f"kept[{name!r}] = {name}")
            writer.line("return odd")

    def slots(self, arguments: list[Argument]) -> dict[Any, Code]:
        """How the rows read aggregates: by the results' text."""
        slots: dict[Any, Code] = {}
        for place, call in enumerate(self.plan.aggregates):
            if not call.args:
                slots["aggregate", place] = Code("len(window)", False, False, "number")
                continue
            argument = next(item for item in arguments if item.node == call.args[0])
            text = INLINE[call.definition.name].result.format(**argument.local, value="")
            slots["aggregate", place] = Code(f"({text})", True, False)
        return slots

    def _write_event(self, loop: LoopWriter, arguments: list[Argument]) -> None:
        writer = loop.source
        condition = self.condition
        if condition is not None:
            with writer.block("try:"):
                loop.skip_unless(condition)
            with writer.block("except DATA_ERRORS as error:"):
                writer.line("fail(e, error)")
                writer.line("continue")
        for argument in arguments:
            self._write_value(loop, argument)
        self.write_leaving(writer, arguments)
        writer.line("window.append(e)")
        self.write_entered(writer)
        for argument in arguments:
            self._write_add(writer, argument)
        with writer.block("try:"):
            loop.skip_unless(self.plan.having)
            before, after = "out.append(Emission(rule, now_ms, 'rows', [", "]))"
            write_row(loop, self.plan, self.functions.names, before, after)
        with writer.block("except DATA_ERRORS as error:"):
            writer.line(f"fail({self.shown}, error)")

    def _write_value(self, loop: LoopWriter, argument: Argument) -> None:
        """The value of an argument and its scaled form; anything but a plain number or NULL ends the loop."""
        writer, place = loop.source, argument.place
        if isinstance(argument.node, Read):
            value = loop.atom(argument.node, "")
        else:
            value = f"a_{place}"
            with writer.block("try:"):
                writer.line(f"{value} = {loop.value(argument.node)}")
            with writer.block("except DATA_ERRORS:"):
                self._write_odd(writer)
        argument.local["value"] = value
        scaled = argument.local["scaled"]
        with writer.block(f"if {value}.__class__ is float:"):
            writer.line(f"{scaled} = {value} * {SCALE!r}")
            with writer.block(f"if not {scaled}.is_integer():"):
                self._write_odd(writer)
            if argument.is_scaled:
                writer.line(f"{scaled} = int({scaled})")
        with writer.block(f"elif {value}.__class__ is int and -{2**53} < {value} < {2**53}:"):
            writer.line(f"{scaled} = {value} << {SHIFT}" if argument.is_scaled else "pass")
        with writer.block(f"elif {value} is None:"):
            writer.line(f"{scaled} = None" if argument.is_scaled else "pass")
        with writer.block("else:"):
            self._write_odd(writer)

    @staticmethod
    def _write_odd(writer: SourceWriter) -> None:
        writer.line("odd = (e, now_ms)")
        writer.line("break")

    def _write_add(self, writer: SourceWriter, argument: Argument) -> None:
        place, value = argument.place, argument.local["value"]
        if argument.is_plain:
            writer.line(f"values_{place}.append({value})")
        if argument.is_scaled:
            writer.line(f"scaled_{place}.append(x_{place})")
        with writer.block(f"if {value} is not None:"):
            for line in united(argument.aggregates, "add"):
                writer.line(line.format(**argument.local))

    def write_removal(self, writer: SourceWriter, arguments: list[Argument], take: str) -> None:
        """The oldest event leaves the aggregates; `take` is how its values are read from their queues."""
        for argument in arguments:
            place = argument.place
            if argument.is_plain:
                writer.line(f"left_{place} = values_{place}{take}")
            if argument.is_scaled:
                writer.line(f"left_x_{place} = scaled_{place}{take}")
            with writer.block(f"if left_{'' if argument.is_plain else 'x_'}{place} is not None:"):
                for line in united(argument.aggregates, "remove"):
                    writer.line(line.format(**argument.local))

    def write_start(self, writer: SourceWriter, arguments: list[Argument]) -> None:
        """Before the loop."""

    def write_entered(self, writer: SourceWriter) -> None:
        """After an event has entered."""

    def write_end(self, writer: SourceWriter) -> None:
        """After the loop."""

    @abstractmethod
    def write_leaving(self, writer: SourceWriter, arguments: list[Argument]) -> None:
        """What leaves before an event enters."""

    size: int | None = None
    """How many events the window takes at most; the queues drop the oldest by themselves."""
    condition: Bound | None = None
    """FILTER, or the stream's filter."""
    shown = "e"
    """The event that errors of rows are reported for."""

    # --- driving ------------------------------------------------------------------------------------------------------

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        self.now_ms = self.context.now_ms = now_ms
        return self._run(iter(rows), len(rows), now_ms)

    def push_timed(self, rows: Sequence[Any], times: Sequence[int]) -> list[Emission]:
        out = self._run(iter(zip(rows, times, strict=True)), len(rows), 0)
        self.now_ms = max(self.now_ms, times[-1])
        return out

    def _run(self, events: Iterator[Any], count: int, now_ms: int) -> list[Emission]:
        """Events at `now_ms`, or in event time pairs of event and time."""
        self.counts["events_in"] += count
        out: list[Emission] = []
        while True:
            if self.operators is not None and not self._on_operators(events, now_ms, out):
                break
            errors = self.counts["errors"]
            odd = None
            if len(self.window) + count <= self.plan.options.max_window_events:
                odd = self.code["push"](events, now_ms, self.out)
            elif (event := next(events, None)) is not None:
                odd = event if self.is_timed else (event, now_ms)
            failed = self.counts["errors"] - errors if self.is_timed else 0
            self.counts["rows_out"] += len(self.out) - failed
            out += self.out
            self.out.clear()
            if odd is None:
                break
            self._hand_over(odd, out)
        if self.errors:
            out += self.errors
            self.errors.clear()
        return out

    def _hand_over(self, odd: tuple[Any, int], out: list[Emission]) -> None:
        """An event that the loop cannot take: the operators go on from the events in the window."""
        from sql.runtime.engine import on_operators

        made = on_operators(
            self.name, self.plan, self.catalog, now_ms=self.now_ms, shape=self.shape, make_row=self.make_row
        )
        times = self.times or repeat(self.now_ms, len(self.window))
        for row, at_ms in zip(self.window, times, strict=True):
            self._step(made, row, at_ms)
        made.counts |= dict.fromkeys(made.counts, 0)
        self.operators = made
        self._one(odd, out)

    def _one(self, event: tuple[Any, int], out: list[Emission]) -> None:
        row, at_ms = event
        got = self._step(self.operators, row, at_ms)
        for emission in got:
            later = self.errors if emission.kind == "error" and not self.is_timed else out
            later.append(emission)
        self.plain_since = 0 if not self._is_plain(row) else self.plain_since + 1
        self.now_ms = max(self.now_ms, at_ms)

    def _step(self, query: Any, row: Any, at_ms: int) -> list[Emission]:
        due: list[Emission] = []
        while (deadline := query.next_deadline()) is not None and deadline <= at_ms:
            due += query.advance(at_ms if query.steps_itself else deadline)
        due += query.push(self.plan.sources[0].stream, [row], at_ms)
        return due

    def _is_plain(self, row: Any) -> bool:
        """Whether the loop could take the event: tried on an empty window."""
        kept = self.window, self.times, self.kept, self.out, dict(self.counts), list(self.errors)
        self.restart()
        odd = self.code["push"](iter(((row, 0),) if self.is_timed else (row,)), 0, [])
        self.window, self.times, self.kept, self.out, counts, errors = kept
        self.counts |= counts
        self.errors[:] = errors
        return odd is None

    def _on_operators(self, events: Iterator[Any], now_ms: int, out: list[Emission]) -> bool:
        """Events go to the operators; True as soon as the loop can take over, with events perhaps left."""
        while True:
            if self._may_return():
                self._return()
                return True
            event = next(events, None)
            if event is None:
                return False
            self._one(event if self.is_timed else (event, now_ms), out)

    def _may_return(self) -> bool:
        """Whether all events in the operators' window are plain."""
        return self.plain_since >= 64 and self.plain_since >= self.operators.retained()

    def _return(self) -> None:
        """The loop goes on from the events in the operators' window."""
        held = [(event.row, event.time_ms) for event in sorted(self.operators.held(), key=lambda event: event.seq)]
        for name, count in self.operators.counts.items():
            if name != "events_in":
                self.counts[name] = self.counts.get(name, 0) + count
        self.operators = None
        self._replay(held)

    def _replay(self, held: list[tuple[Any, int]]) -> None:
        """Make the window what it was, without giving anything out or counting."""
        counts = dict(self.counts)
        self.restart()
        push = self.code["push"]
        if self.is_timed:
            push(iter(held), 0, [])
        else:
            for row, at_ms in held:
                push((row,), at_ms, [])
        self.counts |= counts

    # --- time ---------------------------------------------------------------------------------------------------------

    def next_deadline(self) -> int | None:
        return None if self.operators is None else self.operators.next_deadline()

    def advance_to(self, now_ms: int) -> None:
        if self.operators is not None:
            self.out += self.operators.advance(now_ms)

    def flush(self, now_ms: int) -> list[Emission]:
        return []

    # --- state --------------------------------------------------------------------------------------------------------

    def counters(self) -> dict[str, int]:
        found = super().counters()
        if self.operators is not None:
            for name, count in self.operators.counts.items():
                if name != "events_in":
                    found[name] += count
        return found

    def retained(self) -> int:
        return len(self.window) if self.operators is None else self.operators.retained()

    def _state(self) -> Any:
        if self.operators is not None:
            return {"operators": self.operators.snapshot(), "plain_since": self.plain_since}
        times = self.times or repeat(0, len(self.window))
        return {"window": [[at_ms, pack_row(row)] for row, at_ms in zip(self.window, times, strict=True)]}

    def _put_back(self, state: Any, store: Any) -> None:
        if "operators" in state:
            from sql.runtime.engine import on_operators

            self.operators = on_operators(
                self.name, self.plan, self.catalog, now_ms=self.now_ms, shape=self.shape, make_row=self.make_row
            )
            self.operators.restore(state["operators"])
            self.plain_since = state["plain_since"]
            return
        rows = (({name: decode(value) for name, value in row.items()}, at_ms) for at_ms, row in state["window"])
        self._replay([(self.make_row(row), at_ms) for row, at_ms in rows])
