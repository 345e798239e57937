"""What a stream may say for itself: the longest payload, the longest wait, the field that
tells its messages apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge.deploy.checks.stream_problems import stream_problems
from rules.compile import compile_rules
from rules.loader import load_text, unite
from tests.unit.edge.world import World, rule

KEYED = """streams:
  m: {datasource: plant/#, messageKey: id, latencyMs: 0}
  small: {datasource: small/#, payloadBytesMax: 30}
"""
RULES = KEYED + rule("each", "SELECT n FROM m", "{cloud: {keys: [n], window: 86400000}}")
BOUNDS = "window_start() AS window_start, window_end() AS window_end"
SMALL = RULES + rule("little", "SELECT n FROM small").removeprefix("rules:\n")


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path, latency_ms=5)
    made.write("r.yaml", RULES)
    made.reload()
    return made


def numbers(world: World) -> list[int]:
    world.clock.move(1_000)
    world.gateway.turn()
    world.gateway.commit(force=True)
    return [row["keys"]["n"] for row in world.spooled()]


def test_a_message_whose_key_was_seen_has_no_second_effect(world: World) -> None:
    world.source.send({"n": 1, "id": "a"}, {"n": 2, "id": "b"}, {"n": 3, "id": "a"}, {"n": 4}, {"n": 5}, b"[")
    assert numbers(world) == [1, 2, 4, 5]
    assert world.gateway.message_keys.recognised == 1
    assert sorted(world.source.acknowledged) == [1, 2, 3, 4, 5, 6], "a repetition is acknowledged as well"
    world.close()


@pytest.mark.parametrize("with_snapshot", [False, True])
def test_keys_are_known_after_a_crash(world: World, with_snapshot: bool) -> None:
    world.source.send({"n": 1, "id": 7})
    assert numbers(world) == [1]
    if with_snapshot:
        assert world.commits.snapshot()
    world.crash()
    world.source.send({"n": 2, "id": 7}, {"n": 3, "id": 8})
    assert numbers(world) == [1, 3]
    world.close()


def test_the_most_impatient_stream_decides_how_long_messages_wait(world: World) -> None:
    assert world.gateway.latency_ms == 0 == world.commits.latency_ms
    world.write("r.yaml", RULES.replace("latencyMs: 0", "latencyMs: 20"))
    world.reload()
    assert world.gateway.latency_ms == 20
    world.write("r.yaml", RULES.replace(", latencyMs: 0", ""))
    world.reload()
    assert world.gateway.latency_ms == 5 == world.commits.latency_ms
    world.close()


def test_messages_behind_a_large_payload_do_not_wait_for_company(world: World) -> None:
    world.gateway.latency_ms = 5
    for _ in range(2):
        world.source.send({"n": 1})
        world.gateway.run_until(iter([False, True]).__next__)
    assert world.poller.gathered == [0, 5], "the line is busy with the second one"
    world.clock.move(5)
    world.source.send(b"x" * 300_000)
    world.gateway.run_until(iter([False, True]).__next__)
    assert world.poller.gathered == [0, 5, 0]
    world.close()


def test_messages_wait_for_others_only_where_they_come_often(world: World) -> None:
    world.write("r.yaml", RULES.replace("latencyMs: 0", "latencyMs: 20"))
    world.reload()
    for passed_ms in (1_000, 10, 41, 40):
        world.clock.move(passed_ms)
        world.source.send({"n": 1})
        world.gateway.run_until(iter([False, True]).__next__)
    assert world.poller.gathered == [0, 20, 0, 20]
    world.close()


def test_a_payload_longer_than_its_stream_allows_is_a_dead_letter(world: World) -> None:
    world.write("r.yaml", SMALL)
    world.reload()
    world.source.send({"n": 1, "text": "x" * 30}, topic="small/a")
    world.source.send({"n": 2, "text": "x" * 30}, topic="plant/a")
    assert numbers(world) == [2]
    assert "the payload is longer than the 30 bytes allowed: 50" in world.letters.path.read_text()
    world.close()


def test_a_stream_bounds_the_groups_of_its_rules(world: World) -> None:
    sql = f"SELECT n, count(*) AS c, {BOUNDS} FROM m GROUP BY n, TUMBLINGWINDOW(ss, 1)"
    text = KEYED.replace("latencyMs: 0", "maxKeys: 2") + rule(
        "pairs", sql, "{cloud: {keys: [n], window: 86400000}}"
    )
    world.write("r.yaml", text)
    world.reload()
    world.source.send(*({"n": n} for n in (1, 2, 3, 3, 1, 2)))
    world.gateway.turn()
    assert numbers(world) == [1, 2], "the third key is an error event of the rule"
    assert world.engine.counters("pairs")["errors"] == 2
    world.close()


@pytest.mark.parametrize("option", ['LATENCY_MS="soon"', 'PAYLOAD_BYTES_MAX="0"'])
def test_a_number_that_is_none_is_refused_with_its_place(option: str) -> None:
    text = f"streams:\n  - 'CREATE STREAM m () WITH (DATASOURCE=\"a\", {option})'\n"
    (problem,) = load_text(text, "r.yaml").problems or _compiled(text)
    assert (
        problem.code == "B105" and problem.line == 2 and option.split("=", maxsplit=1)[0] in problem.message
    )


def _compiled(text: str) -> list:  # type: ignore[type-arg]
    compiled = compile_rules(unite([load_text(text, "r.yaml")]))
    return [*compiled.problems, *stream_problems(compiled)]
