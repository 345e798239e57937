"""What the flight recorder and a listener cost the gateway's loop: processor time of the
same messages in each case.

The gateway is whole but for its broker: journal, decoding, two rules, commits. All variants run in turn in
one process.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from benchmarks.measure import Result
from edge.base.message import Message
from edge.delivery.taps import Tap
from tests.unit.edge.world import STREAM, World, rule

BATCHES = 40
SIZE = 250
ROUNDS = 30
"""So many that the least of each is undisturbed on a busy machine too:
with 12 the ratio was between 0.82 and 1.0."""
BAR = 0.95

RULES = {
    "s.yaml": STREAM,
    "a.yaml": rule(
        "a", "SELECT k, avg(n) AS mean FROM m GROUP BY k, TUMBLINGWINDOW(ss, 1) HAVING avg(n) > 50"
    ),
    "b.yaml": rule("b", "SELECT k, n FROM m WHERE n > 98"),
}


def _world(folder: Path, recorder_bytes: int) -> World:
    folder.mkdir()
    made = World(folder, journal={"recorder_bytes": recorder_bytes, "snapshot_bytes": 1_000_000_000})
    for name, text in RULES.items():
        made.write(name, text)
    made.reload()
    return made


def _pass(world: World) -> None:
    messages: list[Message] = [
        (f"plant/{n % 20}", json.dumps({"k": n % 20, "n": n % 100}).encode(), None, 0) for n in range(SIZE)
    ]
    for _ in range(BATCHES):
        world.clock.move(20)
        world.source.on_batch(messages)
        world.gateway.turn()
        world.gateway.commit()
    world.commits.snapshot()


def _least(works: Sequence[Callable[[], None]]) -> list[float]:
    """The least processor seconds of each; done in turn, so that all meet the same machine."""
    best = [float("inf")] * len(works)
    for _ in range(ROUNDS):
        for place, work in enumerate(works):
            began = time.thread_time()
            work()
            best[place] = min(best[place], time.thread_time() - began)
    return best


def recorder() -> Result:
    """The rate with the recorder on, as a share of that with it off; and with a listener that never takes
    anything."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        worlds = [
            _world(Path(folder, name), size) for name, size in (("off", 0), ("on", 4_000_000), ("tap", 0))
        ]
        for world in worlds:
            stack.callback(world.close)
        worlds[2].gateway.taps.add(Tap(frozenset({"m", "a", "b"}), worlds[2].clock))
        off, on, tapped = _least([partial(_pass, world) for world in worlds])
    count = BATCHES * SIZE
    lines = [f"with a listener: {off / tapped:.3f} of the rate without"]
    return Result(
        "recorder",
        off / on,
        "of the rate without",
        events_per_s=count / on,
        cost_ns=on / count * 1e9,
        base_ns=off / count * 1e9,
        bar=BAR,
        lines=lines,
        numbers={"listener": off / tapped},
    )


CASES = {"recorder": recorder}
