"""Replay pushes batches of rules in event time together: each row gets the number that it had in the run."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.unit.edge.world import World

STREAM = """streams:
  - 'CREATE STREAM m () WITH (DATASOURCE="plant/#", TIMESTAMP="ts")'
"""

RULES = (
    STREAM
    + """rules:
  - {id: each, sql: "SELECT n, v * 2 AS d FROM m WHERE n > 1", options: {sendError: true}, actions: [ACTION]}
  - id: mean
    sql: SELECT k, avg(v) AS a, window_start() AS ws FROM m GROUP BY k, TUMBLINGWINDOW(ss, 2)
    options: {sendError: true}
    actions: [ACTION]
  - id: count
    sql: SELECT k, count(*) AS c FROM m GROUP BY k, TUMBLINGWINDOW(ss, 2) HAVING count(*) > 1
    options: {sendError: true}
    actions: [ACTION]
  - id: sessions
    sql: SELECT k, count(*) AS c FROM m GROUP BY k, SESSIONWINDOW(ss, 5, 1)
    options: {lateTolerance: 500}
    actions: [ACTION]
    late: [ACTION]
  - id: recent
    sql: SELECT k, avg(v) AS a FROM m#time(2 sec) GROUP BY k OUTPUT LAST EVERY 1 SECONDS
    actions: [ACTION]
""".replace("ACTION", "{rest: {url: 'http://127.0.0.1:9/', timeout: 100}}")
)

CHAINED = (
    STREAM
    + """  - 'CREATE STREAM chained () WITH (TYPE="memory", DATASOURCE="t", TIMESTAMP="ts")'
rules:
  - {id: one, sql: "SELECT n, ts FROM m WHERE n > 1", actions: [{memory: {topic: t}}]}
  - {id: two, sql: "SELECT n + 10 AS n, ts FROM m WHERE n > 0", actions: [{memory: {topic: t}}]}
  - {id: after, sql: "SELECT n, lag(n) AS before FROM chained", actions: [{rest: {url: 'http://127.0.0.1:9/'}}]}
"""
)

PROCESSING = RULES.replace(', TIMESTAMP="ts"', "")


def send(world: World, dice: random.Random) -> None:
    """A batch: mostly in order, some late, without a time stamp, or with a value that a rule cannot take."""
    now_ms = world.clock.now_ms()
    world.source.send(
        *(
            {
                "n": dice.randrange(4),
                "k": dice.choice("ab"),
                "v": dice.choice([1, 2.5, None] + ["x"] * (dice.random() < 0.2)),
                "ts": now_ms - dice.choice([0, 0, 0, 700]) if dice.random() < 0.97 else "bad",
            }
            for _ in range(dice.randrange(1, 4))
        )
    )


def seen(world: World) -> dict[str, Any]:
    """What sinks, brokers and later numbers depend on."""
    state = world.state()
    state["rules"] = {
        name: {key: value for key, value in rule.items() if key != "now"}
        for name, rule in state["rules"].items()
    }
    return {part: state[part] for part in ("at_ms", "texts", "outbox", "brokers", "rules")}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("text", [RULES, CHAINED, PROCESSING], ids=["event_time", "chained", "processing"])
@pytest.mark.long
def test_a_replay_numbers_rows_as_the_run_did(tmp_path: Path, text: str, seed: int) -> None:
    dice = random.Random(seed)
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "a.yaml").write_text(text)
    world = World(tmp_path)
    assert not [problem.render() for problem in world.manager.problems if problem.is_error]
    for _ in range(120):
        send(world, dice)
        world.gateway.turn()
        world.clock.move(dice.choice([0, 1, 5, 300, 1_000]))
    world.gateway.commit(force=True)
    expected = seen(world)
    assert sum(world.outbox.numbers.values()) > 100
    world.crash()
    assert world.recovery.found.messages > 120
    assert seen(world) == expected
    world.close()
