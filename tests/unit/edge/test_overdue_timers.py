"""Timers long overdue, as after a jump of the clock or a long stop: the loop goes on between them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from edge.base.due_timers import TIMERS_MAX
from tests.support.waiting import wait_for
from tests.unit.edge.world import World

EACH_SECOND = """streams:
  - 'CREATE STREAM m () WITH (DATASOURCE="plant/#")'
rules:
  - id: r
    sql: select sum(n) as total from m output snapshot every 1 sec
    actions: [{ACTION}]
"""
FILE = EACH_SECOND.replace("ACTION", "file: {path: sums.jsonl, sendSingle: true, bufferLength: 10000}")
REST = EACH_SECOND.replace("ACTION", "rest: {url: 'http://127.0.0.1:1/x', bufferLength: 10}")
TICKS = 3 * TIMERS_MAX


@pytest.fixture
def worlds() -> Iterator[list[World]]:
    found: list[World] = []
    yield found
    for world in found:
        world.close()


def jumped(folder: Path, worlds: list[World], text: str) -> World:
    """A gateway with a sum of 5, then a clock that jumps over `TICKS` seconds, and an event of 7."""
    (folder / "rules").mkdir()
    (folder / "rules" / "rule.yaml").write_text(text, "utf-8")
    world = World(folder)
    worlds.append(world)
    assert not world.manager.problems, [problem.render() for problem in world.manager.problems]
    world.source.send({"n": 5})
    world.gateway.turn()
    world.clock.move(TICKS * 1_000)
    world.source.send({"n": 7})
    return world


def sums(world: World) -> list[int]:
    """The results, when all have arrived."""
    path = world.folder / "sums.jsonl"
    wait_for(lambda: not world.outbox.actions("r")[0].delivery.stats().queued, "results")
    return [json.loads(line)["total"] for line in path.read_text("utf-8").splitlines()]


@pytest.mark.long
def test_a_turn_fires_a_share_of_them_and_messages_wait_for_the_rest(
    tmp_path: Path, worlds: list[World], caplog: pytest.LogCaptureFixture
) -> None:
    world = jumped(tmp_path, worlds, FILE)
    sleeps_ms, counts = [], []
    for _ in range(4):
        sleeps_ms.append(world.gateway.turn())
        counts.append(world.outbox.numbers["r"])
    assert sleeps_ms[:2] == [0, 0], "the loop turns again at once"
    assert counts == [TIMERS_MAX, 2 * TIMERS_MAX, TICKS, TICKS]
    (record,) = [record for record in caplog.records if record.message == "timers.overdue"]
    assert record.__dict__["late_ms"] == (TICKS - TIMERS_MAX - 1) * 1_000
    world.clock.move(1_000)
    world.gateway.turn()
    assert sums(world) == [5] * TICKS + [12], "the event came behind all that was overdue"


@pytest.mark.long
def test_a_crash_between_the_shares_changes_nothing(tmp_path: Path, worlds: list[World]) -> None:
    world = jumped(tmp_path, worlds, FILE)
    world.gateway.turn()
    world.gateway.turn()
    world.gateway.commit(force=True)
    world.crash()
    assert world.outbox.numbers["r"] == 2 * TIMERS_MAX
    world.source.send({"n": 7})
    world.gateway.turn()
    world.gateway.turn()
    world.clock.move(1_000)
    world.gateway.turn()
    found = sums(world)
    assert (found.count(12), found[-1]) == (1, 12) and found.count(5) >= TICKS


def test_the_rest_waits_for_a_slow_sink(tmp_path: Path, worlds: list[World]) -> None:
    world = jumped(tmp_path, worlds, REST)
    world.outbox.rows_max = TIMERS_MAX // 2
    sleeps_ms = [world.gateway.turn() for _ in range(4)]
    assert all(sleeps_ms[1:]), "the loop does not turn again at once"
    assert world.outbox.numbers["r"] == TIMERS_MAX
    world.outbox.actions("r")[0].delivery.close(0)
