"""Rules with `cron`, `duration` and `cronDatetimeRange` in a gateway: they wake up, fall
asleep, over crashes."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.unit.edge.world import World

RULES = """rules:
  - id: night
    sql: SELECT sum(n) AS n, count(*) AS c FROM m GROUP BY COUNTWINDOW(2)
    actions: [{cloud: {keys: [n, c], window: 86400000}}]
    options: {cron: "*/10 * * * *", duration: 2m}
  - id: always
    sql: SELECT n FROM m
    actions: [{nop: {}}]
"""
MINUTE_MS = 60_000


def at(world: World, minute: int) -> None:
    """Move the clock to a minute after a full hour, and turn."""
    hour_ms = 3_600_000
    begin = world.clock.now_ms() // hour_ms * hour_ms
    world.clock.move(begin + minute * MINUTE_MS - world.clock.now_ms())
    world.gateway.turn()


def send(world: World, *numbers: int) -> None:
    for number in numbers:
        world.source.send({"n": number})
        world.gateway.turn()
    world.gateway.commit(force=True)


def results(world: World) -> list[tuple[int, int]]:
    found = world.spool._store.db.execute(
        "SELECT body FROM rows WHERE rule = 'night' ORDER BY seq"
    ).fetchall()
    keys = [json.loads(body)["keys"] for (body,) in found]
    return [(key["n"], key["c"]) if isinstance(key, dict) else tuple(key) for key in keys]


@pytest.fixture
def scheduled(world: World) -> World:
    world.clock.move(3_600_000 - world.clock.now_ms() % 3_600_000 + 5 * MINUTE_MS)
    world.write("a.yaml", RULES)
    world.reload()
    return world


def begins(world: World) -> str | None:
    until_ms = world.manager.asleep.get("night")
    return None if until_ms is None else datetime.fromtimestamp(until_ms / 1000, UTC).strftime("%M:%S")


def test_it_sleeps_until_its_time_and_after_its_duration(scheduled: World) -> None:
    assert list(scheduled.manager.running) == ["always"]
    assert begins(scheduled) == "10:00"
    send(scheduled, 1, 2)
    at(scheduled, 10)
    assert set(scheduled.manager.running) == {"always", "night"}
    send(scheduled, 3, 4, 5)
    at(scheduled, 12)
    assert list(scheduled.manager.running) == ["always"]
    assert begins(scheduled) == "20:00"
    send(scheduled, 6)
    at(scheduled, 20)
    send(scheduled, 7, 8)
    assert results(scheduled) == [(7, 2), (15, 2)]  # 5 waited in a window when the rule fell asleep


@pytest.mark.parametrize("minute", [8, 11, 15, 21])
def test_a_crash_at_any_time_changes_nothing(scheduled: World, minute: int) -> None:
    numbers = iter(range(1, 100))
    for now in range(6, 24):
        at(scheduled, now)
        send(scheduled, next(numbers))
        if now == minute:
            scheduled.crash()
    # Minutes 10, 11 (numbers 5, 6) and 20, 21 (numbers 15, 16).
    assert results(scheduled) == [(11, 2), (31, 2)]


def test_a_gateway_that_was_off_when_the_time_came_begins_late(scheduled: World) -> None:
    scheduled.close()
    scheduled.clock.move(6 * MINUTE_MS)
    scheduled.build()
    assert "night" in scheduled.manager.running
    scheduled.clock.move(MINUTE_MS)
    scheduled.gateway.turn()
    assert "night" not in scheduled.manager.running


def test_actions_go_on_while_the_rule_sleeps(scheduled: World) -> None:
    at(scheduled, 10)
    before = scheduled.outbox.actions("night")[0].delivery
    at(scheduled, 12)
    assert scheduled.outbox.actions("night")[0].delivery is before
    at(scheduled, 20)
    assert scheduled.outbox.actions("night")[0].delivery is before


def test_a_sleeping_rule_that_is_removed_leaves_nothing(scheduled: World) -> None:
    scheduled.write("a.yaml", RULES.replace("id: night", "id: day"))
    scheduled.reload()
    assert not scheduled.outbox.actions("night")
    assert set(scheduled.manager.asleep) == {"day"}


def test_a_rule_without_a_schedule_any_more_runs_at_once(scheduled: World) -> None:
    scheduled.write("a.yaml", RULES.replace('options: {cron: "*/10 * * * *", duration: 2m}', ""))
    scheduled.reload()
    assert scheduled.manager.asleep == {}
    assert set(scheduled.manager.running) == {"always", "night"}


def test_after_its_last_range_it_never_runs_again(world: World) -> None:
    begin_ms = world.clock.now_ms() + MINUTE_MS
    spans: list[dict[str, Any]] = [{"beginTimestamp": begin_ms, "endTimestamp": begin_ms + MINUTE_MS}]
    written = f"options: {{cronDatetimeRange: {json.dumps(spans)}}}"
    world.write("a.yaml", RULES.replace('options: {cron: "*/10 * * * *", duration: 2m}', written))
    world.reload()
    seen = []
    for _ in range(4):
        seen.append(("night" in world.manager.running, world.manager.asleep.get("night", 0)))
        world.clock.move(MINUTE_MS)
        world.gateway.turn()
    assert seen == [(False, begin_ms), (True, 0), (False, None), (False, None)]
