"""Rules get structs of the columns they read, until somebody wants to see whole messages."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.edge.world import World, rule

COUNTED = rule(
    "counted",
    "SELECT sum(n) AS s FROM m GROUP BY COUNTWINDOW(4)",
    "{cloud: {keys: [s], window: 60000}}",
)


def shapes(world: World) -> dict[str, str]:
    return {rule_id: item.shape for rule_id, item in world.manager.running.items()}


def send(world: World, *payloads: Any) -> None:
    world.source.send(*payloads)
    world.gateway.turn()


def test_rules_that_name_their_columns_get_structs(world: World) -> None:
    world.write("a.yaml", rule("a", "SELECT n, `class` FROM m WHERE n > 1"))
    world.write("b.yaml", rule("b", "SELECT dev, count(*) AS c FROM m GROUP BY dev, COUNTWINDOW(2)"))
    world.reload()
    assert shapes(world) == {"a": "struct", "b": "struct"}
    send(world, {"n": 1}, {"n": 2, "class": 7, "dev": "x", "rest": [1] * 100})
    assert world.engine.counters("a")["rows_out"] == 1
    assert world.engine.counters("b")["events_in"] == 2


@pytest.mark.parametrize(
    "other",
    [
        rule("all", "SELECT * FROM m"),
        rule("all", "SELECT n FROM m", more="    late: [{nop: {}}]\n"),
        rule("all", "SELECT n FROM m", more="    error: [{nop: {}}]\n"),
    ],
)
def test_a_rule_that_shows_whole_messages_gives_all_of_them_dicts_and_back(world: World, other: str) -> None:
    world.write("counted.yaml", COUNTED)
    world.reload()
    send(world, {"n": 1}, {"n": 2})
    world.write("other.yaml", other)
    world.reload()
    assert shapes(world) == {"counted": "dict", "all": "dict"}
    send(world, {"n": 3})
    (world.rules / "other.yaml").unlink()
    world.reload()
    assert shapes(world) == {"counted": "struct"}
    send(world, {"n": 4})
    # The half-full window has gone through both changes: 1 + 2 + 3 + 4.
    assert [row["keys"]["s"] for row in world.spooled()] == [10]


def test_a_window_of_structs_survives_a_crash(world: World) -> None:
    world.write("counted.yaml", COUNTED)
    world.reload()
    send(world, {"n": 1}, {"n": 2})
    world.crash()
    assert shapes(world) == {"counted": "struct"}
    send(world, {"n": 3}, {"n": 4})
    assert [row["keys"]["s"] for row in world.spooled()] == [10]
