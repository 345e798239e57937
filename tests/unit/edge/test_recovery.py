"""Recovery is a law: snapshot and journal bring back what was, whatever the moment, and
every effect stays single."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from edge.journal.frame import HEADER_BYTES
from edge.journal.reader import JournalPass, read, segments
from sinks.formats import lossless_json
from tests.unit.edge.world import STREAM, World

BOUNDS = "window_start() AS window_start, window_end() AS window_end"

RULES = (
    STREAM
    + """  - 'CREATE STREAM chained () WITH (TYPE="memory", DATASOURCE="t/+")'
rules:
  - {id: each, sql: SELECT n FROM m WHERE n % 3 = 0, actions: [{cloud: {keys: [n], window: 86400000}}]}
  - id: threes
    sql: SELECT sum(n) AS n, count(*) AS c FROM m GROUP BY COUNTWINDOW(3)
    actions: [{memory: {topic: t/threes}}]
  - id: after
    sql: SELECT n, lag(n) AS before FROM chained
    actions: [{cloud: {keys: [n, before], window: 86400000}}]
  - id: seconds
    sql: SELECT g AS n, count(*) AS c, BOUNDS FROM m GROUP BY g, TUMBLINGWINDOW(ss, 10)
    actions: [{cloud: {keys: [n], merge: {c: count}, window: 86400000}}]
  - id: sessions
    sql: SELECT g AS n, count(*) AS c, BOUNDS FROM m GROUP BY g, SESSIONWINDOW(ss, 20, 3)
    actions: [{cloud: {keys: [n], merge: {c: count}, window: 86400000}}]
""".replace("BOUNDS", BOUNDS)
)


class Broker:
    """What a broker knows: the messages that it has not seen acknowledged, which it
    sends again after a break."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.unacknowledged: dict[int, tuple[str, bytes, int, int]] = {}
        self.seen = 0

    def send(self, payload: dict[str, Any]) -> None:
        token = self.world.source.token = self.world.source.token % 60_000 + 1
        message = ("plant/x", json.dumps(payload).encode(), token, 0x02)
        self.unacknowledged[token] = message
        self.world.source.on_batch([message])

    def look(self) -> None:
        """Take the acknowledgements that have come."""
        for token in self.world.source.acknowledged[self.seen :]:
            self.unacknowledged.pop(token, None)
        self.seen = len(self.world.source.acknowledged)

    def again(self) -> None:
        """A new connection: send again what is not acknowledged."""
        self.seen = 0
        if self.unacknowledged:
            last = max(self.unacknowledged)
            self.world.source.on_batch(
                [(t, p, token, f | 0x08) for t, p, token, f in self.unacknowledged.values()]
            )
            self.world.source.token = max(self.world.source.token, last)


def rows(world: World) -> list[tuple[str, Any]]:
    """Everything spooled: rule and body, in the order of each rule."""
    found = world.spool._store.db.execute("SELECT rule, body FROM rows ORDER BY rule, seq").fetchall()
    return [(rule, json.loads(body)) for rule, body in found]


def run(folder: Path, seed: int, crashes: float, **journal: Any) -> list[tuple[str, Any]]:
    """A hundred and fifty messages with gaps; with some probability a crash after each."""
    dice, deaths = random.Random(seed), random.Random(seed + 1)
    (folder / "rules").mkdir(parents=True)
    (folder / "rules" / "a.yaml").write_text(RULES)
    world = World(folder, journal=journal)
    assert not [problem.render() for problem in world.manager.problems if problem.is_error]
    broker = Broker(world)
    try:
        for number in range(150):
            broker.send({"n": number, "g": dice.randrange(3)})
            gap_ms = dice.choice((0, 0, 10, 900, 4_000))
            if deaths.random() < crashes:  # taken in, perhaps processed, not committed
                if deaths.random() < 0.5:
                    world.commits.due_in_ms = lambda now_ms: None  # type: ignore[method-assign]
                    world.gateway.turn()
                world.crash()
                broker.again()
            world.gateway.turn()
            if deaths.random() < crashes:  # committed, but no acknowledgement arrives
                world.crash()
                broker.again()
                world.gateway.turn()
            broker.look()
            world.clock.move(gap_ms)
        world.clock.move(60_000)
        world.gateway.turn()
        world.gateway.commit(force=True)
        return rows(world)
    finally:
        world.close()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("snapshot_bytes", [10_000, 10_000_000])
@pytest.mark.long
def test_a_run_with_crashes_has_the_results_of_one_without(
    tmp_path: Path, seed: int, snapshot_bytes: int
) -> None:
    straight = run(tmp_path / "straight", seed, 0)
    assert len(straight) > 75
    assert run(tmp_path / "crashing", seed, 0.1, snapshot_bytes=snapshot_bytes) == straight


@pytest.mark.long
def test_every_prefix_of_the_journal_with_a_torn_tail_recovers(tmp_path: Path) -> None:
    """A power cut at any byte of the last record: what was synced before it is there, and nothing else."""
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "a.yaml").write_text(RULES)
    world = World(tmp_path)
    for number in range(60):
        world.source.send({"n": number, "g": number % 3})
        world.gateway.turn()
        world.clock.move(500)
    world.close()
    (segment,) = segments(tmp_path / "journal")
    data = segment.path.read_bytes()
    entries = list(read(tmp_path / "journal", 0, JournalPass()))
    copy = tmp_path / "copy"
    copy.mkdir()
    tried = 0
    for entry in entries:
        for cut in range(entry.position, entry.end, 23):
            for torn in (b"", b"\0" * 64, b"\xa7J" + b"\xff" * 40):
                (copy / segment.path.name).write_bytes(data[:cut] + torn)
                reading = JournalPass()
                found = list(read(copy, 0, reading))
                assert [item.end for item in found] == [item.end for item in entries if item.end <= cut]
                assert (reading.end, reading.damage) == (entry.position, [])
                tried += 1
    assert tried > 600
    assert min(entry.end - entry.position for entry in entries) > HEADER_BYTES


def test_an_unreadable_snapshot_costs_a_longer_replay_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "a.yaml").write_text(RULES)
    world = World(tmp_path)
    for number in range(90):
        world.source.send({"n": number, "g": number % 3})
        world.gateway.turn()
        world.clock.move(100)
        if number % 30 == 10:
            world.commits.snapshot()
    before = world.state()
    newest = max((tmp_path / "snapshots").iterdir())
    newest.write_bytes(newest.read_bytes()[:-3] + b"abc")
    world.crash()
    assert world.recovery.found.messages == 49
    after = world.state()
    for part in ("at_ms", "texts", "outbox", "brokers"):
        assert after[part] == before[part]
    world.close()


def test_a_forked_child_writes_the_state_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "a.yaml").write_text(RULES)
    world = World(tmp_path)
    for number in range(10):
        world.source.send({"n": number, "g": number % 3})
    world.gateway.turn()
    expected = lossless_json.decode(lossless_json.encode(world.state()))
    assert world.commits.make(force=True)
    world.commits.snapshots.begin(world.commits.journal.position, world.recovery.state)
    world.source.send({"n": 10, "g": 0})
    world.gateway.turn()
    while not world.commits.snapshots.poll():
        pass
    snapshot = world.commits.snapshots.load()
    assert snapshot is not None
    assert snapshot.state == expected
    assert world.commits.snapshots.sizes.keys() == {"each", "threes", "after", "seconds", "sessions"}
    world.close()


def test_state_of_a_version_before_the_journal_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "a.yaml").write_text(RULES)
    world = World(tmp_path)
    world.source.send({"n": 1, "g": 0}, {"n": 2, "g": 0})
    world.gateway.turn()
    state = {f"rule:{rule}": body for rule, body in world.state()["rules"].items()}
    state |= {"version": 1, "outbox": [], "redelivery": world.gateway.brokers[""].redeliveries.snapshot()[0]}
    world.spool.commit(0, {key: lossless_json.encode(value) for key, value in state.items()})
    world.close()
    shutil.rmtree(tmp_path / "journal")
    shutil.rmtree(tmp_path / "snapshots")
    world.build()
    assert not [key for key in world.spool.state() if key.startswith("rule:")]
    # sent again: known from the old version
    world.source.on_batch([("plant/x", b'{"n": 2, "g": 0}', 2, 0x0A)])
    world.source.token = 2
    world.source.send({"n": 4, "g": 0})
    world.gateway.turn()
    assert [body["keys"] for rule, body in rows(world) if rule == "after"] == [{"n": 7, "before": None}]
    world.crash()
    assert world.recovery.found.messages == 1
    world.close()


def test_state_in_a_form_that_is_not_known_costs_its_rule_the_state_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As after a rollback from a later version."""
    for name in ("before", "after"):
        (tmp_path / name / "rules").mkdir(parents=True)
        (tmp_path / name / "rules" / "a.yaml").write_text(RULES)
    earlier, world = World(tmp_path / "before"), World(tmp_path / "after")
    earlier.source.send({"n": 1, "g": 0}, {"n": 2, "g": 0})
    earlier.gateway.turn()
    state = earlier.state()
    del state["rules"]["threes"]["state"]["parts"]
    world.recovery.restore(state)
    world.source.send(*({"n": number, "g": 0} for number in (10, 20, 30)))
    world.gateway.turn()
    assert not world.manager.rules.failed
    states = {rule: running.state for rule, running in world.manager.running.items()}
    assert states == {rule: "reset" if rule == "threes" else "restored" for rule in states}
    assert [body["keys"] for rule, body in rows(world) if rule == "after"] == [{"n": 60, "before": None}]
    (record,) = [record for record in caplog.records if record.message == "rule.state_unusable"]
    assert "another version of penstock (KeyError('parts'))" in record.__dict__["error"]
    earlier.close()
    world.close()
