"""What a recorded message costs: in `penstock replay`, from the file to the printed rows, and in the recovery
of a gateway from its journal."""

from __future__ import annotations

import contextlib
import io
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.latency_state import SESSION_KEYS, SEVEN, payload_of
from benchmarks.measure import Result, in_turns
from benchmarks.payloads import Decoding, batched, payloads
from edge.base.message import Message
from edge.clock import SimulatedClock
from rules.collector import calm_collector
from tests.unit.edge.world import World

COUNT = 500_000
RECOVERED, RECORDED, RATE = 120_000, 10, 2_000
"""Messages that a recovery replays, those of a batch, and of a second."""

BEGAN_MS = SimulatedClock().now_ms()
RULE = """
streams: [{name: m, datasource: m}]
rules:
  - id: t
    sql: SELECT dev, avg(temp) AS a, count(*) AS c, max(temp) AS hi
         FROM m GROUP BY dev, TUMBLINGWINDOW(ss, 10)
    actions: [{log: {}}]
"""


def replay() -> Result:
    """Half a million recorded messages through a tumbling window."""
    from edge.cli import main

    messages = payloads(COUNT, 100)
    batches = batched(messages)
    decode = Decoding(frozenset(("dev", "temp", "ts"))).decode
    with tempfile.TemporaryDirectory() as folder:
        rule, data = Path(folder, "rule.yaml"), Path(folder, "data.jsonl")
        rule.write_text(RULE, encoding="utf-8")
        data.write_bytes(b"\n".join(messages) + b"\n")

        def run() -> None:
            with contextlib.redirect_stdout(io.StringIO()):
                main(["replay", str(rule), str(data)])

        decoding, whole = in_turns((lambda: [decode(batch) for batch in batches], run), 3)
    return Result(
        "replay",
        whole / decoding,
        events_per_s=COUNT / whole,
        cost_ns=whole / COUNT * 1e9,
        base_ns=decoding / COUNT * 1e9,
        bar=4.0,
    )


def recovery() -> Result:
    """Processor time of replaying a journal: 120,000 messages as 2,000 a second come, seven rules."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "rules").mkdir()
        rules = SEVEN.replace("{mqtt: {server: 'BROKER', topic: results, sendSingle: true}}", "{nop: {}}")
        (Path(folder) / "rules" / "rules.yaml").write_text(rules, encoding="utf-8")
        world = World(Path(folder), journal={"snapshot_bytes": 10**12}, unacknowledged_max=RECOVERED)
        for first in range(0, RECOVERED, RECORDED):
            world.source.on_batch([message(first + place) for place in range(RECORDED)])
            world.gateway.turn()
            world.clock.move(RECORDED * 1_000 // RATE)
        world.gateway.commit(force=True)
        calm_collector()  # as the daemon does when it starts
        began = time.thread_time()
        world.crash()
        elapsed = time.thread_time() - began
        messages = world.recovery.found.messages
        world.close()
    line = f"recovery: {messages:,} messages, seven rules: {elapsed:.2f} s of processor time (bar 2 s)"
    return Result("recovery", unit="s", lines=[line], numbers={"recovery_s": elapsed})


def message(number: int) -> Message:
    """One of 2,000 a second, from the start of the simulated clock on."""
    stamp = int(number % 10 == 0)
    return "plant/1", payload_of(number, stamp, SESSION_KEYS, BEGAN_MS + number * 1_000 // RATE), None, 0


CASES: dict[str, Callable[[], Result]] = {"replay": replay, "recovery": recovery}
