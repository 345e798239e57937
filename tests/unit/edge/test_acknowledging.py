"""Which messages are acknowledged without a commit: those that leave nothing which a crash could lose."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.edge.world import STREAM, World, rule

CHAINED = STREAM + '  - \'CREATE STREAM chained () WITH (TYPE="memory", DATASOURCE="t/x")\'\n'
PASS = "SELECT n FROM m WHERE n > 0"
COUNT = "SELECT count(*) AS c FROM {} GROUP BY TUMBLINGWINDOW(ss, 10)"
TO_MEMORY = "{memory: {topic: t/x}}"


def second(sql: str) -> str:
    """Another rule, behind that of `rule`."""
    return f"  - {{id: s, sql: '{sql}', actions: [{{nop: {{}}}}]}}\n"


def syncs_of(folder: Path, text: str, *payloads: object) -> tuple[int, list[int]]:
    """How often the journal was synced until the messages were acknowledged, and what was."""
    (folder / "rules").mkdir(parents=True)
    (folder / "rules" / "rule.yaml").write_text(text, "utf-8")
    world = World(folder)
    assert not world.manager.problems, [problem.render() for problem in world.manager.problems]
    world.gateway.commit(force=True)
    before = world.commits.journal.syncs
    world.source.send(*payloads)
    world.gateway.turn()
    world.gateway.turn()
    found = world.commits.journal.syncs - before, list(world.source.acknowledged)
    world.close()
    return found


@pytest.mark.parametrize(
    "text",
    [
        STREAM + rule("r", PASS),
        STREAM + rule("r", PASS, "{log: {}}"),
        CHAINED + rule("r", PASS, TO_MEMORY),
        CHAINED + rule("r", PASS, TO_MEMORY, second("SELECT n FROM chained")),
    ],
)
def test_a_rule_without_state_and_durable_effects_needs_none(tmp_path: Path, text: str) -> None:
    assert syncs_of(tmp_path, text, {"n": 1}, {"n": 2}) == (0, [1, 2])


@pytest.mark.parametrize(
    "text",
    [
        STREAM + rule("r", COUNT.format("m")),
        STREAM + rule("r", "SELECT n, lag(n) AS before FROM m"),
        STREAM + rule("r", PASS, "{cloud: {keys: [n], window: 86400000}}"),
        STREAM + rule("r", PASS, more=second(COUNT.format("m"))),
        CHAINED + rule("r", PASS, TO_MEMORY, second(COUNT.format("chained"))),
        STREAM.replace('#")', '#", MESSAGE_KEY="n")') + rule("r", PASS),
    ],
)
def test_state_rows_for_the_cloud_and_remembered_keys_need_one(tmp_path: Path, text: str) -> None:
    assert syncs_of(tmp_path, text, {"n": 1}, {"n": 2}) == (1, [1, 2])


def test_a_dead_letter_needs_one(tmp_path: Path) -> None:
    assert syncs_of(tmp_path, STREAM + rule("r", PASS), b"no JSON") == (1, [1])


def test_results_that_their_sink_has_not_taken_need_one(tmp_path: Path) -> None:
    away = rule("r", PASS, '{rest: {url: "http://127.0.0.1:9/x"}}')
    assert syncs_of(tmp_path, STREAM + away, {"n": 1}) == (1, [1])
    assert syncs_of(tmp_path / "other", STREAM + away, {"n": 0}) == (0, [1]), "no result"


def test_a_commit_that_is_asked_for_is_made(tmp_path: Path) -> None:
    """`penstock why` reads the journal from the disk."""
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "rule.yaml").write_text(STREAM + rule("r", PASS), "utf-8")
    world = World(tmp_path)
    world.source.send({"n": 1})
    world.gateway.turn()
    assert world.source.acknowledged == [1]
    assert not world.commits.journal.is_written
    world.gateway.commit()
    assert world.commits.journal.is_written
    world.close()
