"""The flight recorder without a process: reruns give what was given, bytes are bounded,
taps never hold the loop."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from edge.clock import SimulatedClock
from edge.delivery.taps import ITEMS_MAX, LISTENERS_MAX, Passed, Tap, Taps
from edge.monitor.flight.causes import findings
from edge.monitor.flight.facts import Facts
from edge.monitor.flight.observe import Observations, Observer
from edge.monitor.flight.question import Settings
from edge.monitor.flight.rerun import Rerun
from edge.monitor.flight.stages import stages_of
from sql import Emission
from tests.unit.edge.world import STREAM, World, rule

WINDOW = "SELECT k, sum(n) AS s, count(*) AS c FROM m GROUP BY k, TUMBLINGWINDOW(ss, 1)"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, journal={"snapshot_bytes": 10_000, "segment_bytes": 100_000})
    yield made
    made.close()


def settings(world: World) -> Settings:
    return Settings(str(world.folder), str(world.rules))


def feed(world: World, count: int, first: int = 0) -> None:
    for number in range(first, first + count):
        world.clock.move(100)
        world.source.send({"k": "ab"[number % 2], "n": number})
        world.gateway.turn()
        world.gateway.commit(force=True)


def rows(world: World, from_ms: int = 0) -> list[tuple[str, int, Emission]]:
    """What a rerun from the beginning of the recording gives out."""
    heard: list[tuple[str, int, Emission]] = []
    rerun = Rerun(settings(world), lambda emission, first: heard.append((emission.rule, first, emission)))
    start, _ = rerun.begin(from_ms)
    for entry in rerun.entries(start):
        rerun.apply(entry)
    return heard


def test_messages_acknowledged_without_a_sync_are_in_the_recording_once_it_is_written(world: World) -> None:
    world.write("s.yaml", STREAM)
    world.write("a.yaml", rule("a", "SELECT n FROM m WHERE n % 2 = 0"))
    world.reload()
    world.gateway.commit()
    for number in range(20):
        world.source.send({"n": number})
        world.gateway.turn()
        world.gateway.turn()
    assert len(world.source.acknowledged) == 20
    assert rows(world) == []
    world.gateway.commit()
    assert [(first, emission.inserted) for _, first, emission in rows(world)] == [
        (place + 1, [{"n": 2 * place}]) for place in range(10)
    ]


def test_a_rerun_gives_what_was_given_byte_for_byte_over_crashes_and_reloads(world: World) -> None:
    world.write("s.yaml", STREAM)
    world.write("a.yaml", rule("a", WINDOW, "{file: {path: a.jsonl}}"))
    world.write("b.yaml", rule("b", "SELECT n, lag(n) AS before FROM m WHERE n % 3 = 0"))
    world.reload()
    given: list[tuple[str, int, Emission]] = []

    def listen() -> None:
        hand_over = world.outbox.hand_over

        def heard(emissions: Any, origins: Any = None) -> None:
            for emission in emissions:
                if not world.outbox.is_replaying:
                    given.append((emission.rule, world.outbox.numbers.get(emission.rule, 0) + 1, emission))
                hand_over([emission], origins)

        world.outbox.hand_over = heard  # type: ignore[method-assign]

    listen()
    feed(world, 60)
    world.crash()
    listen()
    feed(world, 60, 60)
    world.write("c.yaml", rule("c", "SELECT max(n) AS most FROM m GROUP BY COUNTWINDOW(7)"))
    world.reload()
    feed(world, 60, 120)
    world.clock.move(3_000)
    world.gateway.turn()
    world.gateway.commit(force=True)
    again = rows(world)
    assert len(given) > 80
    assert again == given[-len(again) :]
    assert {name for name, _, _ in again} == {"a", "b", "c"}


@pytest.mark.long
def test_the_recording_is_never_above_its_bytes(tmp_path: Path) -> None:
    bound = 60_000
    journal = {
        "snapshot_bytes": 10_000,
        "segment_bytes": 100_000,
        "recorder_bytes": bound,
        "compression": "none",
    }
    world = World(tmp_path, journal=journal)
    world.write("s.yaml", STREAM)
    world.write("a.yaml", rule("a", WINDOW))
    world.reload()
    snapshots, reached = world.commits.snapshots, 0
    for number in range(40):
        feed(world, 100, 100 * number)
        snapshots.wait(world.clock.monotonic_ms() + 1)
        world.commits.snapshot()
        kept = sorted(int(path.stem) for path in (tmp_path / "snapshots").glob("*.snapshot"))
        assert len(kept) <= 8
        assert kept[-1] - kept[0] <= bound or len(kept) <= 2
        reached = max(reached, kept[-1] - kept[0])
    assert reached > bound / 2
    used = sum(path.stat().st_size for path in (tmp_path / "journal").glob("*.journal"))
    assert used <= bound + 2 * 100_000
    assert rows(world)
    world.close()


def test_without_a_recorder_only_what_a_restart_needs_is_kept(tmp_path: Path) -> None:
    world = World(tmp_path, journal={"snapshot_bytes": 10_000, "recorder_bytes": 0})
    world.write("s.yaml", STREAM)
    world.write("a.yaml", rule("a", WINDOW))
    world.reload()
    for number in range(5):
        feed(world, 10, 10 * number)
        world.commits.snapshot()
    assert len(list((tmp_path / "snapshots").glob("*.snapshot"))) == 2
    world.close()


def why(world: World, rule_id: str, since_ms: int, key: str | None = None) -> Observations:
    now_ms = world.clock.now_ms()
    return Observer(lambda hear: Rerun(settings(world), hear), rule_id, now_ms - since_ms, now_ms, key).run()


def test_windows_that_began_before_the_time_that_is_asked_for_are_whole(world: World) -> None:
    """The state of the snapshot is carried into the probe of HAVING."""
    world.write("s.yaml", STREAM)
    world.write("a.yaml", rule("a", f"{WINDOW.replace('ss, 1', 'ss, 10')} HAVING count(*) > 50"))
    world.reload()
    feed(world, 95)
    seen = why(world, "a", 500)
    assert seen.streams["m"].messages == 6
    feed(world, 10, 95)
    samples = why(world, "a", 1_500).tallies[-1]
    assert [(item.false, item.nearest and item.nearest.values) for item in samples.conditions] == [
        (2, {"count(*)": 50})
    ]
    assert why(world, "a", 1_500, "b").tallies[-1].rows == 1


def test_a_rule_that_was_deployed_in_the_time_says_so(world: World) -> None:
    world.write("s.yaml", STREAM)
    world.reload()
    feed(world, 5)
    world.write("a.yaml", rule("a", "SELECT n FROM m"))
    world.reload()
    deployed_ms = world.clock.now_ms()
    feed(world, 5, 5)
    seen = why(world, "a", 60_000)
    assert seen.began_ms == deployed_ms
    assert seen.results.rows == 5


def test_a_rule_that_another_feeds_over_a_memory_topic(world: World) -> None:
    memory = 'streams:\n  - \'CREATE STREAM c () WITH (TYPE="memory", DATASOURCE="chain")\'\n'
    world.write("s.yaml", STREAM)
    world.write("c.yaml", memory)
    world.write("a.yaml", rule("a", "SELECT n FROM m WHERE n > 5", "{memory: {topic: chain}}"))
    world.write("b.yaml", rule("b", "SELECT n FROM c WHERE n > 100"))
    world.reload()
    feed(world, 10)
    seen = why(world, "b", 60_000)
    assert seen.streams["c"].rows == 4
    (events,) = seen.tallies
    assert events.conditions[0].nearest is not None
    assert (events.conditions[0].false, events.conditions[0].nearest.values) == (4, {"n": 9})


# --- taps ---------------------------------------------------------------------------------------------------


def test_a_slow_listener_loses_items_and_is_told_how_many() -> None:
    taps, tap = Taps(), Tap(frozenset({"m"}), SimulatedClock())
    assert taps.add(tap)
    messages = [("plant/x", b"{}", None, 0)] * (ITEMS_MAX + 7)
    taps.messages(messages, 5, lambda topic: ["m"])
    items, dropped = tap.take(0)
    assert (len(items), dropped) == (ITEMS_MAX, 7)
    assert items[0] == Passed(5, "m", ("plant/x", b"{}", None, 0))
    assert tap.take(0) == ([], 0)


def test_there_are_only_so_many_listeners() -> None:
    taps = Taps()
    assert all(taps.add(Tap(frozenset(), SimulatedClock())) for _ in range(LISTENERS_MAX))
    one_more = Tap(frozenset(), SimulatedClock())
    assert not taps.add(one_more)
    taps.remove(taps.listeners[0])
    assert taps.add(one_more)


KEYED = "contexts:\n  per_k: {sql: partition by k from m, idle: 1h}\n"
TABLE = 'tables:\n  t: {sql: "create table t (k string primary key, c int)"}\n'
MERGE = (
    "on m(n > 40) as e merge t where t.k = e.k when matched then update set c = e.n "
    "when not matched then insert select e.k as k, e.n as c"
)


def causes(world: World, declarations: str, sql: str, context: str = "") -> list[tuple[str, str]]:
    """Code and text of what `why` finds after 50 events, n of 0 to 49, of keys a and b."""
    world.write("s.yaml", f"{STREAM}{declarations}")
    world.write("a.yaml", rule("a", f'"{sql}"', more=f"    context: {context}\n" if context else ""))
    world.reload()
    assert not [problem for problem in world.manager.problems if problem.is_error]
    feed(world, 50)
    found = why(world, "a", 60_000)
    for one, following in pairwise(stages_of(found)):
        assert one.passed == following.count
    return [(item.code, item.text) for item in findings(found, Facts("a", world.clock.now_ms()))]


def test_conditions_in_the_partitions_of_a_context(world: World) -> None:
    """Partition a has n of 0, 2, … 48, b has 1, 3, … 49, whose sum is 625."""
    found = causes(world, KEYED, "SELECT sum(n) AS s FROM m HAVING sum(n) > 1000", "per_k")
    text = "HAVING sum(n) > 1000 failed for 50 of 50 rows; nearest sum(n) 625, 375 short (context.key1=b)"
    assert found == [("having", text)]
    assert why(world, "a", 60_000, "a").tallies[-1].rows == 25


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("a", ("fired", "with all keys it fired: 2 rows in 1 output, the last one 0 ms ago")),
        ("pum", ("key", "none of 52 events and rows has the key 'pum'; there are a, b")),
        ("bb", ("key", "none of 52 events and rows has the key 'bb'; did you mean 'b'?")),
    ],
)
def test_a_key_that_is_asked_for(world: World, key: str, expected: tuple[str, str]) -> None:
    world.write("s.yaml", STREAM)
    sql = "SELECT k, sum(n) AS s FROM m GROUP BY k, COUNTWINDOW(50) HAVING sum(n) > 0"
    world.write("a.yaml", rule("a", sql))
    world.reload()
    feed(world, 50)
    seen = why(world, "a", 60_000, key)
    found = findings(seen, Facts("a", world.clock.now_ms()))
    assert (found[0].code, found[0].text) == expected
    assert "output" not in [stage.name for stage in stages_of(seen)]


def test_windows_in_a_context_go_on_from_the_snapshot(world: World) -> None:
    """What is asked for begins when each partition has five events in its window of ten."""
    sql = '"SELECT count(*) AS c FROM m#length_batch(10) HAVING count(*) > 10"'
    world.write("s.yaml", f"{STREAM}{KEYED}")
    world.write("a.yaml", rule("a", sql, more="    context: per_k\n"))
    world.reload()
    feed(world, 10)
    world.commits.snapshot()
    feed(world, 10, 10)
    seen = why(world, "a", 1_000)
    assert seen.cold_ms is None
    assert [(tally.rows, tally.passed) for tally in seen.tallies if tally.probe.stage == "samples"] == [
        (2, 0)
    ]


def test_events_while_no_partition_was_open(world: World) -> None:
    shift = "contexts:\n  shift: {sql: start m(n = 30) end after 10 minutes}\n"
    found = causes(world, shift, "SELECT n FROM m WHERE n > 100", "shift")
    assert found[0][0] == "filter"
    assert found[1] == ("context", "30 of 50 events came while no partition of context shift was open")


def test_what_acts_on_tables(world: World) -> None:
    text = "FILTER n > 100 failed for 50 of 50 events; nearest n 49, 51 short"
    assert causes(world, TABLE, MERGE.replace("40", "100")) == [("filter", text)]
    assert causes(world, TABLE, MERGE)[0][0] == "fired"
    choice = "on m as e select t.c as c from t where t.k = e.k and t.c > 60"
    text = "50 of 50 events did nothing: no row of 't' met the conditions"
    assert causes(world, TABLE, choice) == [("limit", text)]


def test_an_event_that_a_condition_cannot_evaluate_is_said_once(world: World) -> None:
    """The event with n of 49 compares a text with a number."""
    found = causes(world, "", "SELECT n FROM m WHERE CASE WHEN n = 49 THEN k ELSE n END > 100")
    reasons = [text for code, text in found if code == "type"]
    assert len(reasons) == 1
    assert reasons[0].startswith("1 event could not be evaluated: ")


def test_a_late_event_is_lost_in_event_time_and_not_behind_the_window(world: World) -> None:
    """With 9 the window [0, 5) ends, so the 1 behind it is late; 10 ends [5, 10)."""
    world.write("s.yaml", STREAM.replace('#"', '#", TIMESTAMP="n"'))
    world.write("a.yaml", rule("a", "SELECT count(*) AS c FROM m GROUP BY TUMBLINGWINDOW(ms, 5)"))
    world.reload()
    assert not world.manager.problems
    for number in (0, 9, 1, 10):
        feed(world, 1, number)
    seen = why(world, "a", 60_000)
    lost = {stage.name: stage.lost for stage in stages_of(seen) if stage.lost}
    assert lost == {"event time": {"late": 1}}
    texts = [item.text for item in findings(seen, Facts("a", world.clock.now_ms()))]
    assert "1 of 4 events came too late: their windows were closed" in texts
    assert not any("could not be evaluated" in text for text in texts)
