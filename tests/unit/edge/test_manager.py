"""Rules being deployed, swapped and stopped, without a process around them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.waiting import wait_for
from tests.unit.edge.world import STREAM, World, rule


def running(world: World) -> dict[str, str]:
    return {rule_id: item.rule.rule.sql for rule_id, item in world.manager.running.items()}


def test_a_bad_file_at_boot_stops_nothing_else(world: World) -> None:
    world.write("a.yaml", rule("a", "SELECT n FRO m"))
    world.write("b.yaml", rule("b", "SELECT n FROM m"))
    world.reload()
    assert list(running(world)) == ["b"]
    (problem,) = world.manager.problems
    assert problem.render().startswith(str(world.rules / "a.yaml") + ":3:")


def test_an_unchanged_rule_is_not_touched(world: World) -> None:
    world.write("a.yaml", rule("a", "SELECT n FROM m"))
    world.reload()
    query = world.engine.queries["a"]
    delivery = world.outbox.actions("a")[0].delivery
    world.write("b.yaml", rule("b", "SELECT n FROM m"))
    world.write("a.yaml", "# a comment\n" + rule("a", "SELECT n FROM m"))
    world.reload()
    assert world.engine.queries["a"] is query
    assert world.outbox.actions("a")[0].delivery is delivery


def test_only_the_action_that_changed_is_built_anew(world: World) -> None:
    world.write("a.yaml", rule("a", "SELECT n FROM m", "{nop: {}}, {log: {}}"))
    world.reload()
    before = [action.delivery for action in world.outbox.actions("a")]
    world.write("a.yaml", rule("a", "SELECT n FROM m", "{nop: {}}, {log: {level: warning}}"))
    world.reload()
    after = [action.delivery for action in world.outbox.actions("a")]
    assert after[0] is before[0]
    assert after[1] is not before[1]


def test_state_follows_the_meaning_of_the_query_not_its_text(world: World) -> None:
    world.write("a.yaml", rule("a", "SELECT sum(n) AS s FROM m GROUP BY COUNTWINDOW(2)"))
    world.reload()
    world.write("a.yaml", rule("a", "select  sum(n) as total from m group by countwindow(2)"))
    world.reload()
    assert world.manager.running["a"].state == "kept"
    world.write("a.yaml", rule("a", "SELECT sum(n) AS s FROM m GROUP BY COUNTWINDOW(3)"))
    world.reload()
    assert world.manager.running["a"].state == "reset"


def test_a_rule_that_is_not_triggered_is_checked_but_does_not_run(world: World) -> None:
    world.write("a.yaml", rule("a", "SELECT n FROM m", more="    triggered: false\n"))
    world.reload()
    assert running(world) == {}
    assert world.manager.stopped == ("a",)


def test_only_streams_that_are_read_are_subscribed(world: World) -> None:
    assert world.gateway.streams.received == {}
    world.write("a.yaml", rule("a", "SELECT n FROM m"))
    world.reload()
    assert world.gateway.streams.received == {"m": 0}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ('TYPE="mqt", DATASOURCE="x"', "TYPE 'mqt' of stream 'k' is no source of this gateway"),
        ('FORMAT="json"', "stream 'k' has no DATASOURCE"),
        ('DATASOURCE="a/#/b"', "'#' in topic filter 'a/#/b' must be a whole level"),
        ('DATASOURCE="a", FORMAT="avro"', "format 'avro' is not supported"),
        ('DATASOURCE="a", FORMAT="protobuf"', "SCHEMAID: '' names no message"),
    ],
)
def test_a_stream_that_cannot_be_fed_is_a_problem_of_its_file(
    world: World, options: str, expected: str
) -> None:
    world.write(
        "k.yaml", f"streams:\n  - 'CREATE STREAM k () WITH ({options})'\n" + rule("k", "SELECT n FROM k")
    )
    world.reload()
    assert running(world) == {}
    texts = [problem.render() for problem in world.manager.problems]
    assert any(expected in text and "k.yaml:2:" in text for text in texts), texts


def test_an_id_used_twice_keeps_the_first(world: World) -> None:
    world.write("a.yaml", rule("x", "SELECT n FROM m"))
    world.write("b.yaml", rule("x", "SELECT n + 1 AS n FROM m"))
    world.reload()
    assert running(world) == {"x": "SELECT n FROM m"}
    assert "already defined" in world.manager.problems[0].message


def test_a_new_file_does_not_take_the_id_of_a_running_rule(world: World) -> None:
    world.write("b.yaml", rule("x", "SELECT n FROM m"))
    world.reload()
    world.write("a.yaml", rule("x", "SELECT n + 1 AS n FROM m"))
    for _ in range(2):
        world.reload()
        assert running(world) == {"x": "SELECT n FROM m"}
        (problem,) = world.manager.problems
        assert Path(problem.path).name == "a.yaml"
        assert f"'x' is already defined in {world.rules / 'b.yaml'}:2" in problem.message
        world.gateway.commit(force=True)
        world.crash()
    (world.rules / "b.yaml").unlink()
    world.reload()
    assert running(world) == {"x": "SELECT n + 1 AS n FROM m"}
    assert world.manager.problems == []


def test_a_changed_file_does_not_take_an_id_from_another(world: World) -> None:
    world.write("a.yaml", rule("x", "SELECT n FROM m"))
    both = rule("y", "SELECT n FROM m") + rule("z", "SELECT n FROM m").removeprefix("rules:\n")
    world.write("b.yaml", both)
    world.reload()
    world.write("a.yaml", rule("y", "SELECT n + 1 AS n FROM m"))
    for _ in range(2):
        world.reload()
        assert running(world) == dict.fromkeys("xyz", "SELECT n FROM m")
        assert [Path(problem.path).name for problem in world.manager.problems] == ["a.yaml"]
        world.gateway.commit(force=True)
        world.crash()


def test_a_rule_moves_from_one_file_to_another_in_one_reading(world: World) -> None:
    world.write("a.yaml", rule("x", "SELECT n FROM m"))
    world.write("b.yaml", rule("y", "SELECT n FROM m"))
    world.reload()
    world.write("a.yaml", rule("y", "SELECT n + 1 AS n FROM m"))
    world.write("b.yaml", rule("x", "SELECT n + 1 AS n FROM m"))
    world.reload()
    assert running(world) == dict.fromkeys("yx", "SELECT n + 1 AS n FROM m")
    assert world.manager.problems == []


@pytest.mark.parametrize("with_snapshot", [True, False])
def test_a_rule_whose_stream_changed_under_it_goes_on_after_a_restart(
    world: World, with_snapshot: bool
) -> None:
    stream = "streams:\n  - {name: k, datasource: k, columns: {%s: bigint}}\n"
    world.write("k.yaml", stream % "n")
    window = "SELECT sum(n) AS s FROM k GROUP BY COUNTWINDOW(3)"
    stored = "tables: {t: {sql: create table t (n int primary key)}}\n" + rule(
        "b", "insert into t select n from k"
    )
    world.write("a.yaml", rule("a", window))
    world.write("b.yaml", stored)
    world.reload()
    world.source.send({"n": 1}, topic="k")
    world.gateway.turn()
    world.write("k.yaml", stream % "o")
    world.reload()
    for n in (2, 4):
        world.source.send({"n": n}, topic="k")
        world.gateway.turn()
        world.gateway.commit(force=True)
        if with_snapshot:
            world.commits.snapshot()
        world.crash()
        world.reload()
        assert set(running(world)) == {"a", "b"}
    assert world.outbox.numbers["a"] == 1
    assert len(world.engine.catalog.relations["t"]) == 3
    world.write("k.yaml", stream % "n")
    world.reload()
    assert not world.manager.going_on
    assert {item.state for item in world.manager.running.values()} <= {"restored", "kept"}


def test_the_log_tells_what_becomes_of_a_file_without_rules(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "penstock.rules")
    path = world.rules / "more.yaml"
    good = "streams:\n  - 'CREATE STREAM k () WITH (DATASOURCE=\"k\")'\n"
    notes = []
    for text in ("streams: [", good, "streams: [", good, "streams: [", None):
        if text is None:
            path.unlink()
        else:
            path.write_text(text, "utf-8")
        world.reload()
        notes += [vars(record)["note"] for record in caplog.records if record.msg.startswith("rule_file.")]
        caplog.clear()
    nothing, goes_on = (
        "nothing of it is used, for there is no good version of it",
        "the last good version goes on",
    )
    assert notes == [nothing, None, goes_on, None, goes_on, "it is gone"]


def test_a_file_that_is_bad_twice_and_good_again(world: World) -> None:
    path = world.rules / "a.yaml"
    for text, expected in (
        (rule("a", "SELECT 1 AS one FROM m"), "SELECT 1 AS one FROM m"),
        ("rules: {", "SELECT 1 AS one FROM m"),
        (rule("a", "SELECT nothing( FROM m"), "SELECT 1 AS one FROM m"),
        (rule("a", "SELECT 2 AS two FROM m"), "SELECT 2 AS two FROM m"),
    ):
        path.write_text(text, "utf-8")
        world.reload()
        assert running(world) == {"a": expected}
    path.unlink()
    world.reload()
    assert running(world) == {}


def test_the_state_of_a_removed_rule_is_removed(world: World) -> None:
    world.write("a.yaml", rule("a", "SELECT sum(n) AS s FROM m GROUP BY COUNTWINDOW(2)"))
    world.reload()
    world.source.send({"n": 1})
    world.gateway.turn()
    assert "a" in world.recovery.state()["rules"]
    (world.rules / "a.yaml").unlink()
    world.reload()
    assert "a" not in world.recovery.state()["rules"]


@pytest.mark.parametrize(
    "bad", ["rules: {", rule("a", "SELECT nothing( FROM m"), rule("b", "SELECT n FROM nowhere")]
)
def test_a_file_that_is_bad_at_boot_runs_in_its_last_good_version(world: World, bad: str) -> None:
    query = "SELECT sum(n) AS s FROM m GROUP BY COUNTWINDOW(2)"
    world.write("a.yaml", rule("a", query))
    world.reload()
    world.source.send({"n": 1})
    world.gateway.turn()
    for _ in range(2):
        world.write("a.yaml", bad)
        world.crash()
        assert running(world) == {"a": query}
        assert world.manager.running["a"].state == "restored"
        assert {problem.path for problem in world.manager.problems} == {str(world.rules / "a.yaml")}
    world.write("a.yaml", rule("a", "SELECT n FROM m"))
    world.crash()
    assert running(world) == {"a": "SELECT n FROM m"}
    (world.rules / "a.yaml").unlink()
    world.crash()
    world.write("a.yaml", bad)
    world.reload()
    assert running(world) == {}, "a file that was away begins anew"


def test_messages_that_nobody_reads_are_told_of(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.source.send({"n": 1}, {"n": 2})
    world.gateway.turn()
    assert world.gateway.streams.unrouted == 2
    assert [record.getMessage() for record in caplog.records].count("message.unrouted") == 1


def test_memory_streams(world: World) -> None:
    world.write("a.yaml", rule("a", "SELECT n * 10 AS n FROM m", "{memory: {topic: t/a}}"))
    memory = 'streams:\n  - \'CREATE STREAM k () WITH (TYPE="memory", DATASOURCE="t/+")\'\n'
    world.write("k.yaml", memory + rule("k", "SELECT n FROM k", "{cloud: {keys: [n], window: 60000}}"))
    world.reload()
    world.source.send({"n": 1}, {"n": 2})
    world.gateway.turn()
    assert [row["keys"]["n"] for row in world.spooled()] == [10, 20]


def test_rows_of_a_memory_stream_know_their_topic(world: World) -> None:
    world.write("a.yaml", rule("a", "SELECT n FROM m", "{memory: {topic: 't/{{.n}}'}}"))
    memory = 'streams:\n  - \'CREATE STREAM k () WITH (TYPE="memory", DATASOURCE="t/+")\'\n'
    sql = "SELECT meta(topic) AS t FROM k"
    world.write("k.yaml", memory + rule("k", sql, "{cloud: {keys: [t], window: 60000}}"))
    world.reload()
    world.source.send({"n": 1}, {"n": 2})
    world.gateway.turn()
    assert [row["keys"]["t"] for row in world.spooled()] == ["t/1", "t/2"]


@pytest.mark.long
def test_rows_of_other_sources_have_no_topic(world: World) -> None:
    stream = "streams: [{name: k, type: simulator, datasource: x, extra: {data: [{a: 1}], loop: false}}]\n"
    sql = "SELECT isnull(meta(topic)) AS t FROM k"
    world.write("k.yaml", stream + rule("k", sql, "{cloud: {keys: [t], window: 60000}}"))
    world.reload()

    def is_done() -> bool:
        world.gateway.turn()
        return bool(world.spooled())

    wait_for(is_done, "a row")
    assert [row["keys"]["t"] for row in world.spooled()] == [True]


def test_a_rule_whose_file_is_gone_for_a_moment_misses_nothing(tmp_path: Path) -> None:
    """Deleted and saved again, also over a crash: events in between count, and results
    come when it is back."""
    text = rule(
        "a", "SELECT sum(n) AS n FROM m GROUP BY COUNTWINDOW(2)", "{cloud: {keys: [n], window: 60000}}"
    )
    world = World(tmp_path, grace_ms=60_000)
    world.write("s.yaml", STREAM)
    world.write("a.yaml", text)
    world.reload()
    for number, crashes in ((1, False), (2, True), (4, False), (8, True)):
        (world.rules / "a.yaml").unlink()
        world.reload()
        assert list(world.manager.grace.leaving) == ["a"]
        assert world.spooled() == ([] if number < 4 else [{**world.spooled()[0]}])
        world.source.send({"n": number})
        world.gateway.turn()
        if crashes:
            world.commits.snapshot()
            world.crash()
            assert list(world.manager.grace.leaving) == ["a"]
        world.write("a.yaml", text)
        world.reload()
        world.gateway.turn()
        world.gateway.commit(force=True)
    assert [row["keys"]["n"] for row in world.spooled()] == [3, 12]
    world.close()


def test_a_rule_that_does_not_come_back_is_removed_after_its_grace(tmp_path: Path) -> None:
    world = World(tmp_path, grace_ms=60_000)
    world.write("s.yaml", STREAM)
    world.write("a.yaml", rule("a", "SELECT n FROM m"))
    world.reload()
    (world.rules / "a.yaml").unlink()
    world.reload()
    world.source.send({"n": 1})
    assert world.gateway.turn() is not None
    world.clock.move(59_000)
    world.gateway.turn()
    assert list(world.manager.running) == ["a"]
    world.clock.move(1_000)
    world.gateway.turn()
    assert list(world.manager.running) == []
    assert world.outbox.dropped_held == 1
    world.crash()
    world.gateway.turn()
    assert list(world.manager.running) == []
    world.close()


def test_a_directory_that_is_gone_changes_nothing(world: World) -> None:
    world.write("a.yaml", rule("a", "SELECT n FROM m"))
    world.reload()
    world.rules.rename(world.folder / "elsewhere")
    world.reload()
    assert (list(running(world)), world.files.is_missing) == (["a"], True)
    (world.folder / "elsewhere").rename(world.rules)
    world.reload()
    assert (list(running(world)), world.files.is_missing) == (["a"], False)
