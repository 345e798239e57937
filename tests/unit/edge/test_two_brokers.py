"""Streams of several brokers: topics, packet ids, sessions and snapshots of one say nothing of another."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from edge.base.message import DUPLICATE
from edge.intake.backlog import Arrival
from edge.journal.record import Session
from tests.unit.edge.test_recovery import rows
from tests.unit.edge.world import Source, World

RULES = """
streams:
  near: {datasource: plant/#}
  far: {datasource: plant/#, confKey: line2}
rules:
  - {id: a, sql: SELECT n FROM near, actions: [{cloud: {keys: [n], window: 60000}}]}
  - {id: b, sql: SELECT n FROM far, actions: [{cloud: {keys: [n], window: 60000}}]}
"""


def two(folder: Path) -> tuple[World, Source]:
    (folder / "rules").mkdir(exist_ok=True)
    (folder / "rules" / "r.yaml").write_text(RULES)
    world = World(folder)
    world.close()
    world.broker_names = frozenset({"line2"})
    world.build()
    return world, second(world)


def second(world: World) -> Source:
    source = Source()
    world.gateway.sources.add(world.gateway.brokers.add("line2"), source)
    return source


def results(world: World) -> list[tuple[str, int]]:
    world.gateway.turn()
    return [(rule, body["keys"]["n"]) for rule, body in rows(world)]


def test_equal_topics_and_packet_ids_are_told_apart(tmp_path: Path) -> None:
    world, far = two(tmp_path)
    world.source.send({"n": 1})
    far.send({"n": 2})
    world.gateway.turn()
    # Both brokers send again, each under packet id 1.
    world.source.on_batch([("plant/x", b'{"n": 1}', 1, 2 | DUPLICATE)])
    far.on_batch([("plant/x", b'{"n": 2}', 1, 2 | DUPLICATE)])
    assert results(world) == [("a", 1), ("b", 2)]
    assert world.gateway.brokers.recognised == 2
    assert (world.source.acknowledged, far.acknowledged) == ([1, 1], [1, 1])
    world.close()


@pytest.mark.parametrize("stored", [False, True], ids=["journal", "snapshot"])
def test_after_a_crash_each_broker_s_repetitions_are_known(tmp_path: Path, stored: bool) -> None:
    world, far = two(tmp_path)
    session = Session("line2 gw", {"plant/#": 1}, connection="line2")
    world.intake.put(Arrival("mqtt.line2", [], [], session))
    world.source.send({"n": 1})
    far.send({"n": 2}, {"n": 3})
    assert results(world) == [("a", 1), ("b", 2), ("b", 3)]
    if stored:
        assert world.commits.snapshot()
    world.crash()
    far = second(world)
    assert world.gateway.brokers["line2"].session == session
    far.on_batch([("plant/x", b'{"n": 3}', 2, 2 | DUPLICATE), ("plant/x", b'{"n": 1}', 1, 2 | DUPLICATE)])
    assert results(world) == [("a", 1), ("b", 2), ("b", 3), ("b", 1)]
    world.close()


def test_a_new_session_of_one_broker_is_none_of_the_other(tmp_path: Path) -> None:
    world, far = two(tmp_path)
    world.source.send({"n": 1})
    far.send({"n": 2})
    world.gateway.turn()
    fresh = Session("line2 gw", {}, is_new=True, connection="line2")
    world.intake.put(Arrival("mqtt.line2", [], [], fresh))
    world.source.on_batch([("plant/x", b'{"n": 1}', 1, 2 | DUPLICATE)])
    far.on_batch([("plant/x", b'{"n": 2}', 1, 2 | DUPLICATE)])
    assert results(world) == [("a", 1), ("b", 2), ("b", 2)]
    world.close()


def test_a_refused_message_is_kept_with_its_connection(tmp_path: Path) -> None:
    world, far = two(tmp_path)
    far.send(b"{")
    world.gateway.turn()
    world.gateway.commit(force=True)
    (line,) = (tmp_path / "dead" / "dead-letters.jsonl").read_text().splitlines()
    assert json.loads(line)["connection"] == "line2" and json.loads(line)["streams"] == ["far"]
    world.close()
