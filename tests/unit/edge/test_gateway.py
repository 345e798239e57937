"""The gateway loop on a simulated clock: order, acknowledgement, sleep, bounds, crash."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from edge.base.message import Message
from edge.config import JournalConfig
from tests.support.waiting import PATIENCE_S, wait_for
from tests.unit.edge.world import Source, World

STREAM = "streams:\n  - 'CREATE STREAM m () WITH (DATASOURCE=\"plant/#\")'\n"


def cloud_rule(sql: str, rule_id: str = "r", **cloud: Any) -> str:
    action = json.dumps({"cloud": {"window": 60_000, **cloud}})
    return f"{STREAM}rules:\n  - id: {rule_id}\n    sql: {sql}\n    actions: [{action}]\n"


EACH = cloud_rule("SELECT n FROM m WHERE n >= 0", keys=["n"])
THREES = cloud_rule("SELECT sum(n) AS total FROM m GROUP BY COUNTWINDOW(3)", merge={"total": "sum"})
SECONDS = cloud_rule(
    "SELECT count(*) AS c, window_start() AS window_start, window_end() AS window_end"
    " FROM m GROUP BY TUMBLINGWINDOW(ss, 10)",
    merge={"c": "count"},
)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    worlds.clear()
    yield tmp_path
    for world in worlds:
        world.close()


worlds: list[World] = []


def world_of(folder: Path, text: str, **settings: Any) -> World:
    (folder / "rules").mkdir()
    (folder / "rules" / "rule.yaml").write_text(text, "utf-8")
    world = World(folder, **settings)
    worlds.append(world)
    assert not world.manager.problems, [problem.render() for problem in world.manager.problems]
    return world


def keys(world: World) -> list[int]:
    return [row["keys"]["n"] for row in world.spooled()]


def totals(world: World) -> list[float]:
    return [row["values"][0]["float"] for row in world.spooled()]


def test_a_message_is_acknowledged_when_its_row_is_committed(folder: Path) -> None:
    world = world_of(folder, EACH)
    world.source.send({"n": 1}, {"n": -1}, {"n": 2})
    assert world.source.acknowledged == []
    world.gateway.turn()
    assert keys(world) == [1, 2]
    assert world.source.acknowledged == [1, 2, 3], "also the one that caused nothing"


def test_an_error_that_a_rule_sends_is_no_row_for_the_cloud(folder: Path) -> None:
    text = (
        cloud_rule("SELECT n FROM m WHERE n * 2 >= 0", keys=["n"]).rstrip()
        + "\n    options: {sendError: true}\n"
    )
    world = world_of(folder, text)
    world.source.send({"n": "x"}, {"n": 1})
    world.gateway.turn()
    assert keys(world) == [1]
    (line,) = world.letters.path.read_text("utf-8").splitlines()
    assert "an error is no row for the cloud" in json.loads(line)["reason"]


def test_rubbish_is_kept_and_acknowledged(folder: Path) -> None:
    world = world_of(folder, EACH)
    world.source.send(b"{", {"n": 1})
    world.gateway.turn()
    assert world.source.acknowledged == [1, 2]
    (line,) = world.letters.path.read_text("utf-8").splitlines()
    assert json.loads(line)["topic"] == "plant/x"
    assert sum(world.gateway.refusals.rejected.values()) == 1


def test_a_message_read_by_two_streams_is_one_dead_letter(folder: Path) -> None:
    second = "  - 'CREATE STREAM k () WITH (DATASOURCE=\"plant/+\")'\nrules:\n"
    text = EACH.replace("rules:\n", second) + "  - {id: q, sql: SELECT n FROM k, actions: [{nop: {}}]}\n"
    world = world_of(folder, text)
    world.source.send(b"{")
    world.gateway.turn()
    assert world.letters.written == 1


def test_the_loop_sleeps_until_the_window_closes_and_no_longer(folder: Path) -> None:
    world = world_of(folder, SECONDS)
    start = world.clock.now_ms()
    assert start % 10_000 == 0
    world.gateway.commit(force=True)
    assert world.gateway.turn() is None, "an empty gateway sleeps until it is woken"
    world.clock.move(2_500)
    world.source.send({"n": 1}, qos=0)
    # Quality 0 needs no commit at once: what comes first is the idle commit, then the window's end.
    assert world.gateway.turn() == 5_000
    world.clock.move(5_000)
    assert world.gateway.turn() == 2_500
    while world.clock.now_ms() < start + 10_000:
        world.clock.move(world.gateway.turn() or 0)
    assert world.clock.now_ms() == start + 10_000
    world.gateway.turn()
    world.clock.move(5_000)
    world.gateway.turn()
    (row,) = world.spooled()
    assert (row["window_start"], row["window_end"]) == (start, start + 10_000)


def test_half_a_window_survives_a_crash_and_its_messages_are_not_counted_twice(folder: Path) -> None:
    world = world_of(folder, THREES)
    world.source.send({"n": 1}, {"n": 2})
    world.gateway.turn()
    assert world.source.acknowledged == [1, 2]
    world.source.send({"n": 4})
    world.gateway.intake.take_items()  # it arrived, and the process died before it was looked at
    world.crash()
    world.source.send({"n": 8})
    world.gateway.turn()
    assert totals(world) == [11.0]


@pytest.mark.parametrize("with_snapshot", [False, True])
def test_a_file_read_again_at_the_start_does_not_hide_repetitions_of_the_broker(
    folder: Path, with_snapshot: bool
) -> None:
    """Both number their messages from 1: rows of a file came before the broker's repetitions."""
    world = world_of(folder, THREES)

    def read_file() -> None:
        file = Source()
        world.gateway.sources.add("site", file)
        file.on_batch([("$source/site", b'{"row": 1}', 1, 0), ("$source/site", b'{"row": 2}', 2, 0)])

    world.source.send({"n": 1}, {"n": 2})
    read_file()
    world.gateway.turn()
    if with_snapshot:
        world.commits.snapshot()
    world.crash()
    read_file()
    world.gateway.turn()
    world.source.on_batch([("plant/x", b'{"n": 1}', 1, 0x0A), ("plant/x", b'{"n": 2}', 2, 0x0A)])
    world.source.token = 2
    world.source.send({"n": 4})
    world.gateway.turn()
    assert totals(world) == [7.0]


ORDERED = {
    "pattern": (
        ["select a.n as n, b.n as p from pattern [every a=a -> b=b where timer:within(1 hour)]"],
        [(1, 1), (2, 2)],
    ),
    "join": (
        ["select a.n as n, b.n as p from a#length(1) as a, b#length(1) as b"],
        [(1, 1), (2, 1), (2, 2), (2, 3), (3, 3), (4, 3)],
    ),
    "insert into": (
        [
            "insert into c select n from b",
            "select a.n as n, c.n as p from a#length(1) as a, c#length(1) as c",
        ],
        [(1, 1), (2, 1), (2, 2), (2, 3), (3, 3), (4, 3)],
    ),
    "variable": (["on b set v = n", "select n, v as p from a"], [(1, 0), (2, 1), (3, 3), (4, 3)]),
    "table": (
        ["insert into t select n from b", "select n, (select max(n) from t) as p from a where n > 1"],
        [(2, 1), (3, 3), (4, 3)],
    ),
    "one topic": (
        ["insert into t select n from again", "select n, (select max(n) from t) as p from a where n > 1"],
        [(2, 1), (3, 2), (4, 3)],
    ),
}
"""Statements over two streams whose rows depend on the order in which events of both come."""


@pytest.mark.parametrize(
    ("kind", "body"),
    [(kind, b'{"n": %d}') for kind in ORDERED]
    + [
        ("join", b'[{"n": %d}]'),
        ("join", b' [{"n": %d}]'),
        ("table", b'[{"n": %d}]'),
        ("one topic", b'[{"n": %d}]'),
    ],
)
def test_the_order_of_events_of_several_topics_is_kept_within_a_batch(
    folder: Path, kind: str, body: bytes
) -> None:
    statements, expected = ORDERED[kind]
    streams = [f'CREATE STREAM {name} (n BIGINT) WITH (DATASOURCE="t/{name}")' for name in "abx"]
    streams.append('CREATE STREAM again (n BIGINT) WITH (DATASOURCE="t/a")')
    actions = [{"cloud": {"window": 60_000, "keys": ["n", "p"]}}]
    rules: list[dict[str, Any]] = [
        {"id": f"r{at}", "sql": sql, "actions": actions if " p" in sql else [{"nop": {}}]}
        for at, sql in enumerate(statements)
    ]
    rules.append({"id": "x", "sql": "select n from x", "actions": [{"nop": {}}]})
    beside: dict[str, Any] = {"variables": {"v": 0}}
    if kind in ("table", "one topic"):
        beside["tables"] = {"t": "create table t (n bigint primary key)"}
    world = world_of(folder, json.dumps({"streams": streams, **beside, "rules": rules}))
    order = [("a", 1), ("b", 1), ("a", 2), ("b", 2), ("b", 3), ("x", 0), ("a", 3), ("a", 4)]
    batch: list[Message] = [(f"t/{name}", body % n, None, 0) for name, n in order]
    batch[3:3] = [("t/a", b"[]", None, 0), ("t/b", b"no JSON", None, 0)]
    world.source.on_batch(batch)
    world.gateway.turn()
    world.gateway.commit(force=True)
    assert [(row["keys"]["n"], row["keys"]["p"]) for row in world.spooled()] == expected


def test_what_was_not_committed_is_as_if_it_had_not_happened(folder: Path) -> None:
    world = world_of(folder, THREES)
    world.gateway.commits = None
    world.source.send({"n": 1}, {"n": 2}, {"n": 4})
    world.gateway.turn()  # the window closed, its row is in memory, but there was no commit
    assert world.source.acknowledged == []
    world.crash()
    world.source.send({"n": 1}, {"n": 2}, {"n": 4})  # so the broker sends again
    world.gateway.turn()
    assert totals(world) == [7.0]


def test_a_full_spool_stops_intake_and_nothing_is_lost(folder: Path) -> None:
    world = world_of(folder, EACH, spool_bytes_max=2_000, unacknowledged_max=10)
    for number in range(40):
        if not world.source.paused:
            world.source.send({"n": number})
        world.gateway.turn()
    held = world.outbox.rows_waiting()
    assert held > 0
    sent = world.source.token
    uploaded: list[int] = []
    for _ in range(20):
        rows = world.spooled()
        uploaded += [row["keys"]["n"] for row in rows]
        oldest = world.spool.outgoing.oldest()
        if oldest is None and not world.outbox.rows_waiting() and not world.spool.stats().pending:
            break
        if oldest is not None:
            free(world, oldest)
        world.clock.move(1_000)
        world.gateway.turn()
    assert uploaded == list(range(sent))
    assert sorted(world.source.acknowledged) == list(range(1, sent + 1))
    assert not world.source.paused


def test_the_loop_sleeps_while_messages_wait_for_a_slow_sink(folder: Path) -> None:
    world = world_of(folder, EACH, spool_bytes_max=2_000)
    world.outbox.rows_max = 3
    while not world.outbox.is_full():
        world.source.send({"n": world.source.token})
        world.gateway.turn()
    numbered = world.outbox.numbers["r"]
    world.source.send({"n": world.source.token})
    sleeps_ms = [world.gateway.turn() for _ in range(3)]
    assert all(sleeps_ms), "it is not turned again at once"
    assert world.outbox.numbers["r"] == numbered
    for _ in range(20):
        oldest = world.spool.outgoing.oldest()
        if oldest is not None:
            free(world, oldest)
        world.clock.move(1_000)
        world.gateway.turn()
    assert world.outbox.numbers["r"] == world.source.token


def free(world: World, oldest: Any) -> None:
    """Upload one file, as the uploader would."""
    from cloud_sync.upload_files import form_file

    rows = world.spool.outgoing.take(oldest.rule, oldest.date, 10_000, 10**9, schema=oldest.schema)
    planned, _ = form_file(rows, "gw", world.spool.spool_id)
    world.spool.outgoing.plan(planned)
    world.spool.outgoing.acknowledge(planned)


def test_intake_pauses_at_its_bound_and_resumes_at_half(folder: Path) -> None:
    world = world_of(folder, EACH, intake_bytes_max=50)
    for number in range(10):
        world.source.send({"n": number})
    world.gateway.backlog.put(world.gateway.intake.take_items())
    world.gateway._brake()
    assert world.source.paused
    world.gateway.turn()
    assert not world.source.paused
    assert world.gateway.sources.pauses == 1
    assert keys(world) == list(range(10))


def test_results_a_sink_has_not_taken_survive_a_crash(folder: Path) -> None:
    text = (
        f"{STREAM}rules:\n  - id: r\n    sql: SELECT n "
        f"FROM m\n    actions: [{{rest: {{url: 'http://127.0.0.1:1/x'}}}}]\n"
    )
    world = world_of(folder, text)
    world.source.send({"n": 1}, {"n": 2})
    world.gateway.turn()
    assert world.source.acknowledged == [1, 2]
    world.outbox.actions("r")[0].delivery.close(0)
    world.crash()
    assert open_rows(world) == [{"n": 1}, {"n": 2}]
    world.outbox.actions("r")[0].delivery.close(0)


def test_a_receipt_that_comes_after_the_commit_is_durable_soon(folder: Path) -> None:
    """A sink was away, and nothing happens after it is back: a crash later sends nothing again."""
    answers = threading.Event()

    class Slow(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            answers.wait(PATIENCE_S)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Slow) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/"
        world = world_of(
            folder,
            f"{STREAM}rules:\n  - {{id: r, sql: SELECT n FROM m, actions: [{{rest: {{url: '{url}'}}}}]}}\n",
        )
        world.source.send({"n": 1}, {"n": 2})
        world.gateway.turn()
        assert world.source.acknowledged == [1, 2] and open_rows(world)
        answers.set()
        wait_for(lambda: not world.outbox.actions("r")[0].delivery.stats().queued, "the results")
        for _ in range(3):
            world.clock.move(world.gateway.turn() or 0)
        assert world.clock.monotonic_ms() <= JournalConfig().idle_interval_ms
        world.crash()
        assert open_rows(world) == []
        world.outbox.actions("r")[0].delivery.close(0)
        server.shutdown()


def open_rows(world: World) -> list[Any]:
    """Results of rule r that its first action has not confirmed."""
    return [row for _, emission in world.outbox.actions("r")[0].open.values() for row in emission.inserted]


def test_results_for_an_action_that_is_gone_become_dead_letters(folder: Path) -> None:
    text = (
        f"{STREAM}rules:\n  - id: r\n    sql: SELECT n "
        f"FROM m\n    actions: [{{rest: {{url: 'http://127.0.0.1:1/x'}}}}]\n"
    )
    world = world_of(folder, text)
    world.source.send({"n": 1})
    world.gateway.turn()
    world.outbox.actions("r")[0].delivery.close(0)
    world.write("rule.yaml", EACH)
    world.crash()
    (line,) = world.letters.path.read_text("utf-8").splitlines()
    assert json.loads(line)["rows"] == [{"n": 1}]
    assert "was removed before delivery" in json.loads(line)["reason"]


def test_a_defect_in_the_engine_costs_the_rows_but_not_the_gateway(folder: Path) -> None:
    # A rule with a window: several rules without one run as one loop, past the query's own push.
    world = world_of(folder, cloud_rule("SELECT n FROM m GROUP BY COUNTWINDOW(1)", keys=["n"]))
    query: Any = world.engine.queries["r"]
    push = query.push

    def broken(stream: str, rows: Any, now_ms: int) -> Any:
        if any(row.n == 13 for row in rows):
            raise ZeroDivisionError("a defect")
        return push(stream, rows, now_ms)

    query.push = broken
    for number in (12, 13, 14):
        world.source.send({"n": number})
        world.gateway.turn()
    assert keys(world) == [12, 14]
    assert world.source.acknowledged == [1, 2, 3]
    (line,) = world.letters.path.read_text("utf-8").splitlines()
    assert json.loads(line)["rows"] == [{"n": 13}]
    assert world.engine.dispatch.defects == 1
