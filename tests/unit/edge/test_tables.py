"""Scan tables whose rows stand in a file: each rule reads them when it begins, and keeps them over
restarts."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.waiting import wait_for
from tests.unit.edge.world import World

MACHINES = [{"id": 1, "hall": "A"}, {"id": 2, "hall": "B"}]

TABLE = """streams:
  - 'CREATE STREAM m () WITH (DATASOURCE="plant/#")'
  - 'CREATE TABLE machines (id BIGINT, hall STRING) WITH (DATASOURCE="machines.json")'
"""
RULE = """  - id: {id}
    sql: SELECT m.id, hall FROM m INNER JOIN machines ON m.id = machines.id{more}
    actions: [{{cloud: {{keys: [id, hall], window: 86400000}}}}]
"""


def rules(*ids: str, more: str = "") -> str:
    return TABLE + "rules:\n" + "".join(RULE.format(id=name, more=more) for name in ids)


@pytest.fixture
def plant(world: World) -> World:
    (world.rules / "s.yaml").unlink()
    (world.folder / "input" / "machines.json").write_text(json.dumps(MACHINES))
    return world


def deploy(world: World, text: str) -> None:
    world.write("r.yaml", text)
    world.reload()
    assert [problem.render() for problem in world.manager.problems if problem.is_error] == []


def turn_until(world: World, done: Callable[[], bool]) -> None:
    """Let the loop turn until something is so; then commit."""

    def is_done() -> bool:
        world.gateway.turn()
        return done()

    wait_for(is_done)
    world.gateway.commit(force=True)


def read(world: World, rule: str, rows: int = 2) -> None:
    """Turn until the rule's table is read."""
    name = f"machines@{rule}"
    turn_until(world, lambda: world.gateway.streams.received.get(name, 0) >= rows)


def results(world: World, rule: str) -> list[list[Any]]:
    found = world.spool._store.db.execute(
        "SELECT body FROM rows WHERE rule = ? ORDER BY seq", (rule,)
    ).fetchall()
    return [list(json.loads(body)["keys"].values()) for (body,) in found]


def send(world: World, *numbers: int) -> None:
    for number in numbers:
        world.source.send({"id": number})
    world.gateway.turn()
    world.gateway.commit(force=True)


def test_events_are_joined_with_the_rows_of_the_file(plant: World) -> None:
    deploy(plant, rules("a"))
    read(plant, "a")
    send(plant, 2, 1, 3)
    assert results(plant, "a") == [[2, "B"], [1, "A"]]


def test_a_rule_that_comes_later_reads_them_too_and_nobody_has_them_twice(plant: World) -> None:
    deploy(plant, rules("a"))
    read(plant, "a")
    deploy(plant, rules("a", "b"))
    read(plant, "b")
    send(plant, 1)
    assert (results(plant, "a"), results(plant, "b")) == ([[1, "A"]], [[1, "A"]])


@pytest.mark.parametrize("crash", [True, False])
def test_a_restart_keeps_the_rows_and_reads_none_twice(plant: World, crash: bool) -> None:
    deploy(plant, rules("a"))
    read(plant, "a")
    if crash:
        plant.crash()
    else:
        plant.close()
        plant.build()
    for _ in range(20):
        plant.gateway.turn()
        time.sleep(0.005)
    send(plant, 1, 2)
    assert results(plant, "a") == [[1, "A"], [2, "B"]]


def test_a_rule_with_another_query_begins_with_the_file_as_it_is_now(plant: World) -> None:
    deploy(plant, rules("a"))
    read(plant, "a")
    (plant.folder / "input" / "machines.json").write_text(json.dumps([{"id": 1, "hall": "Z"}]))
    deploy(plant, rules("a", more=" AND m.id > 0"))
    read(plant, "a", 3)
    send(plant, 1, 2)
    assert results(plant, "a") == [[1, "Z"]]


def test_a_rule_that_went_and_came_back_reads_the_file_again(plant: World) -> None:
    deploy(plant, rules("a"))
    read(plant, "a")
    deploy(plant, rules("b"))
    read(plant, "b")
    deploy(plant, rules("a", "b"))
    read(plant, "a")
    send(plant, 1)
    assert (results(plant, "a"), results(plant, "b")) == ([[1, "A"]], [[1, "A"]])


def test_the_newest_rows_are_kept(plant: World) -> None:
    deploy(
        plant, rules("a").replace('DATASOURCE="machines.json"', 'DATASOURCE="machines.json", RETAIN_SIZE="1"')
    )
    read(plant, "a")
    send(plant, 1, 2)
    assert results(plant, "a") == [[2, "B"]]


def test_a_row_that_does_not_fit_is_told_and_the_others_are_there(plant: World) -> None:
    (plant.folder / "input" / "machines.json").write_text(json.dumps([{"id": "x"}, *MACHINES]))
    deploy(plant, rules("a"))
    read(plant, "a", 3)
    send(plant, 1)
    assert results(plant, "a") == [[1, "A"]]


def test_csv_and_growing_files_make_tables_too(plant: World) -> None:
    path = plant.folder / "input" / "machines.csv"
    path.write_text("id,hall\n1,A\n")
    extra = json.dumps({"fileType": "csv", "hasHeader": True, "follow": True}).replace('"', '\\"')
    deploy(
        plant, rules("a").replace('DATASOURCE="machines.json"', f'DATASOURCE="machines.csv", EXTRA="{extra}"')
    )
    read(plant, "a", 1)
    with path.open("a") as file:
        file.write("2,B\n")
    read(plant, "a", 2)
    send(plant, 1, 2)
    assert results(plant, "a") == [[1, "A"], [2, "B"]]
