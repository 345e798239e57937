"""Measuring: decoding alone and decoding with rules, in turns, the best of several rounds each."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.payloads import BATCH, EVENTS_PER_MS, START_MS, Decoding, batched
from edge.deploy.row_shapes import takes_dicts
from rules.collector import calm_collector
from sql import Catalog, Engine, parse, plan_rule, run_script

STREAM = "CREATE STREAM m () WITH (DATASOURCE='m', FORMAT='json')"
EVENT_TIME = "CREATE STREAM m () WITH (DATASOURCE='m', FORMAT='json', TIMESTAMP='ts')"

Work = Callable[[], Any]


@dataclass
class Result:
    """What one benchmark found. `lines` are printed below the table."""

    name: str
    ratio: float | None = None
    unit: str = "times decoding"
    events_per_s: float | None = None
    cost_ns: float | None = None
    base_ns: float | None = None
    bar: float | None = None
    lines: list[str] = field(default_factory=list)
    numbers: dict[str, float] = field(default_factory=dict)


def in_turns(works: Sequence[Work], rounds: int) -> list[float]:
    """The least processor seconds of each piece of work; all are done once per round and
    so meet the same machine.

    It is the time of this thread, so other processes on the machine do not count.
    """
    best = [float("inf")] * len(works)
    for _ in range(rounds):
        for place, work in enumerate(works):
            gc.collect()
            began = time.thread_time()
            work()
            best[place] = min(best[place], time.thread_time() - began)
    return best


class Bench:
    """An engine with rules on stream `m`, fed with payloads; time goes on from one pass to the next."""

    def __init__(
        self, rules: Sequence[str], messages: Sequence[bytes], *, laps: int = 0, before: Sequence[str] = ()
    ) -> None:
        """`laps`: in event time; time stamps cannot come again, so each run takes the next of so many equal
        parts. `before`: statements that declare what the rules need.
        """
        catalog = Catalog()
        self.engine = Engine(catalog)
        for statement in parse(EVENT_TIME if laps else STREAM):
            catalog.define(statement)  # type: ignore[arg-type]
        for text in before:
            run_script(self.engine, text, START_MS)
        plans = [plan_rule(rule, catalog) for rule in rules]
        needed = [plan.columns("m") for plan in plans]
        whole = None in needed or any(map(takes_dicts, plans))
        columns = None if whole else frozenset().union(*(part for part in needed if part is not None))
        self.decoding = Decoding(columns)
        batches = batched(messages)
        size = len(batches) // max(1, laps)
        self.laps = [batches[first : first + size] for first in range(0, len(batches), size)][1:]
        """The messages of the runs after this one, in event time."""
        self.batches = batches[:size]
        self.passes = 1
        """How often `run` goes through the messages."""
        self.now_ms = START_MS
        for number, plan in enumerate(plans):
            self.engine.deploy(
                f"r{number}", plan, START_MS, shape=self.decoding.shape, make_row=self.decoding.make_row
            )
        calm_collector()  # as the daemon does

    def feed(self, messages: Sequence[bytes]) -> None:
        """Take other messages from now on."""
        self.batches = batched(messages)

    def decode(self) -> None:
        """One pass of decoding alone."""
        decode = self.decoding.decode
        for batch in self.batches:
            decode(batch)

    def run(self) -> None:
        """One pass of decoding with the rules; the emissions are thrown away."""
        decode, push = self.decoding.decode, self.engine.push
        for _ in range(self.passes):
            for batch in self.batches:
                rows, _ = decode(batch)
                self.now_ms += BATCH // EVENTS_PER_MS
                push("m", rows, self.now_ms)
        if self.laps:
            self.batches = self.laps.pop(0)

    def warm(self) -> None:
        """Fill the windows and warm the code; no rule may fail, for an error costs less than a result."""
        self.run()
        for name in self.engine.queries:
            assert not self.engine.counters(name)["errors"], name

    @property
    def events(self) -> int:
        """How many events a run takes."""
        return self.passes * sum(map(len, self.batches))


def against_decoding(
    name: str,
    rules: Sequence[str],
    messages: Sequence[bytes],
    bar: float | None,
    rounds: int = 7,
    *,
    event_time: bool = False,
    before: Sequence[str] = (),
) -> Result:
    """The cost of an event with these rules, in costs of decoding it."""
    bench = Bench(rules, messages, laps=rounds + 1 if event_time else 0, before=before)
    bench.warm()
    decoding, whole = in_turns((bench.decode, bench.run), rounds)
    return in_decodings(name, bench.events, decoding, whole, bar)


def in_decodings(name: str, events: int, decoding: float, whole: float, bar: float | None) -> Result:
    """The result for so many events: `whole`, their decoding and the rules in seconds,
    beside `decoding` alone."""
    return Result(
        name,
        whole / decoding,
        events_per_s=events / whole,
        cost_ns=whole / events * 1e9,
        base_ns=decoding / events * 1e9,
        bar=bar,
    )


def against_smallest(name: str, benches: dict[int, Bench], bar: float | None, rounds: int = 5) -> Result:
    """The cost of an event at the last of these sizes, in costs of one at the first; a line
    says the cost at each."""
    for bench in benches.values():
        bench.warm()
    seconds = in_turns([bench.run for bench in benches.values()], rounds)
    costs = {size: took / benches[size].events * 1e9 for took, size in zip(seconds, benches, strict=True)}
    base, *_, cost = costs.values()
    shown = ", ".join(f"{size:,}: {cost:,.0f} ns ({cost / base:.2f})" for size, cost in costs.items())
    return Result(
        name,
        cost / base,
        "times the smallest",
        events_per_s=1e9 / cost,
        cost_ns=cost,
        base_ns=base,
        bar=bar,
        lines=[f"{name} {shown}"],
    )
