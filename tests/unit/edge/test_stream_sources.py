"""Streams from files, from servers that are asked, from senders by HTTP, and from rows
that are written down."""

from __future__ import annotations

import gzip
import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest
import zstandard

from tests.support.waiting import PATIENCE_MS, PATIENCE_S, wait_for
from tests.unit.edge.world import World, rule

ALL = rule("all", "SELECT * FROM s", "{file: {path: out.jsonl}}")


@pytest.fixture(autouse=True)
def actions_end(world: World) -> Iterator[None]:
    """The file that a test writes is closed behind it."""
    yield
    close(world.outbox.actions("all"))


def close(actions: Sequence[Any]) -> None:
    for action in actions:
        action.delivery.close(0)


def crash(world: World) -> None:
    """Start again without what is not on disk; the threads of the first run end."""
    actions = world.outbox.actions("all")
    world.crash()
    close(actions)


def stream(datasource: str, kind: str, declared: str = "", form: str = "", **extra: Any) -> str:
    """A file with the stream `s`."""
    options = f'DATASOURCE="{datasource}", TYPE="{kind}"{form}'
    written = json.dumps(extra).replace("\\", "\\\\").replace('"', '\\"')
    text = f'CREATE STREAM s ({declared}) WITH ({options}, EXTRA="{written}")'
    return f"streams:\n  - {json.dumps(text)}\n"


def turn_until(world: World, done: Callable[[], bool]) -> None:
    """Let the loop turn until something is so."""

    def is_done() -> bool:
        world.gateway.turn()
        return done()

    wait_for(is_done, f"{world.manager.failed_sources}")


def written(world: World) -> list[dict[str, Any]]:
    """The rows that the rule has written so far."""
    path = world.folder / "out.jsonl"
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def rows(world: World, count: int) -> list[dict[str, Any]]:
    """Its rows, once there are so many."""
    turn_until(world, lambda: len(written(world)) >= count)
    return written(world)


def deploy(world: World, text: str) -> None:
    world.write("r.yaml", text + ALL)
    world.reload()
    assert [problem.render() for problem in world.manager.problems if problem.is_error] == []


# --- files --------------------------------------------------------------------------------------------------

THREE = [{"a": 1}, {"a": 2}, {"a": 3}]


@pytest.mark.parametrize(
    ("name", "content", "extra", "expected"),
    [
        ("rows.json", json.dumps(THREE), {}, THREE),
        ("one.json", '{"a": 1}', {"fileType": "json"}, [{"a": 1}]),
        ("rows.jsonl", '{"a": 1}\n\n{"a": 2}\n{"a": 3}', {"fileType": "lines"}, THREE),
        ("rows.csv", "a,b\n1,x\n2,\n", {"fileType": "csv", "hasHeader": True},
         [{"a": 1, "b": "x"}, {"a": 2, "b": None}]),
        ("rows.csv", "# c\n1,x\nend\n", {"fileType": "csv", "columns": ["a", "b"], "ignoreStartLines": 1,
                                         "ignoreEndLines": 1}, [{"a": 1, "b": "x"}]),
        ("rows.csv", 'a\n"two\nlines"\n', {"fileType": "csv", "columns": ["b"]},
         [{"b": "a"}, {"b": "two\nlines"}]),
    ],
)  # fmt: skip
def test_files(
    world: World, name: str, content: str, extra: dict[str, Any], expected: list[dict[str, Any]]
) -> None:
    (world.folder / "input" / name).write_text(content, "utf-8")
    deploy(world, stream(name, "file", "a BIGINT, b STRING", **extra))
    found = rows(world, len(expected))
    assert [
        {key: row.get(key) for key in want} for row, want in zip(found, expected, strict=True)
    ] == expected


def test_compressed_and_parquet_files(world: World) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.Table.from_pylist(THREE), world.folder / "input" / "rows.parquet")
    deploy(world, stream("rows.parquet", "file", fileType="parquet"))
    assert [row["a"] for row in rows(world, 3)] == [1, 2, 3]
    (world.folder / "input" / "more.gz").write_bytes(gzip.compress(b'{"a": 4}\n'))
    deploy(world, stream("more.gz", "file", fileType="lines", decompression="gzip"))
    assert [row["a"] for row in rows(world, 4)] == [1, 2, 3, 4]


def test_a_file_goes_on_behind_the_rows_that_are_safe(world: World) -> None:
    path = world.folder / "input" / "rows.jsonl"
    path.write_text('{"a": 1}\n{"a": 2}\n', "utf-8")
    deploy(world, stream("rows.jsonl", "file", fileType="lines"))
    assert len(rows(world, 2)) == 2
    turn_until(world, lambda: world.gateway.sources["s"].stats["safe"] == 2)
    world.gateway.sources.stop(PATIENCE_MS)
    path.write_text(path.read_text("utf-8") + '{"a": 3}\n', "utf-8")
    crash(world)
    turn_until(world, lambda: {"a": 3} in written(world))
    assert world.gateway.sources["s"].stats["messages"] == 1


def test_a_position_that_cannot_be_stored_ends_nothing_and_is_stored_later(world: World) -> None:
    (world.folder / "input" / "rows.jsonl").write_text('{"a": 1}\n{"a": 2}\n', "utf-8")
    positions = world.folder / "positions"
    positions.write_text("")
    deploy(world, stream("rows.jsonl", "file", fileType="lines"))
    assert len(rows(world, 2)) == 2
    turn_until(world, lambda: world.gateway.sources["s"].stats["errors"] > 0)
    positions.unlink()
    wait_for(lambda: [json.loads(path.read_text())["rows"] for path in positions.glob("*.json")] == [2])


def test_rows_that_are_not_safe_are_read_again(world: World) -> None:
    (world.folder / "input" / "rows.jsonl").write_text('{"a": 1}\n{"a": 2}\n', "utf-8")
    deploy(world, stream("rows.jsonl", "file", fileType="lines"))
    wait_for(lambda: world.gateway.sources["s"].stats["rows"] >= 2, "two rows")
    world.gateway.sources.stop(PATIENCE_MS)  # nothing was processed, so nothing is safe
    crash(world)
    assert [row["a"] for row in rows(world, 2)] == [1, 2]


def test_a_file_is_followed_and_a_line_that_is_not_whole_waits(world: World) -> None:
    path = world.folder / "input" / "rows.jsonl"
    path.write_text('{"a": 1}\n{"a": ', "utf-8")
    deploy(world, stream("rows.jsonl", "file", fileType="lines", follow=True))
    assert [row["a"] for row in rows(world, 1)] == [1]
    with path.open("a", encoding="utf-8") as file:
        file.write('2}\n{"a": 3}\n')
    assert [row["a"] for row in rows(world, 3)] == [1, 2, 3]
    path.write_text('{"a": 4}\n', "utf-8")  # as a log is rotated
    assert rows(world, 4)[3] == {"a": 4}


def test_a_text_that_is_no_number_stays_a_text(world: World) -> None:
    (world.folder / "input" / "rows.csv").write_text("v\nnan\n1.5\n", "utf-8")
    deploy(world, stream("rows.csv", "file", "v float", fileType="csv", hasHeader=True))
    assert [row.get("v") for row in rows(world, 2)] == ["nan", 1.5]


def test_a_file_is_read_again_at_its_interval(world: World) -> None:
    (world.folder / "input" / "rows.json").write_text('[{"a": 1}]', "utf-8")
    deploy(world, stream("rows.json", "file", interval=10))
    assert [row["a"] for row in rows(world, 3)][:3] == [1, 1, 1]


def test_the_files_of_tables_are_read_before_those_of_streams(world: World) -> None:
    (world.folder / "input" / "rows.json").write_text('[{"k": "c"}]', "utf-8")
    (world.folder / "input" / "site.json").write_text(
        json.dumps([{"k": k, "city": k} for k in "abc"]), "utf-8"
    )
    extra = json.dumps(json.dumps({"sendInterval": 20}))
    for name, kind in (("scanned", "scan"), ("found", "lookup")):
        options = f'DATASOURCE="site.json", TYPE="file", KIND="{kind}", KEY="k", RETAIN_SIZE="10"'
        table = f"CREATE TABLE {name} (k string, city string) WITH ({options}, EXTRA={extra})"
        world.write(f"{name}.sql", table)
    sql = "SELECT s.k AS k, scanned.city AS scanned, found.city AS found FROM s "
    sql += "LEFT JOIN scanned ON s.k = scanned.k LEFT JOIN found ON s.k = found.k"
    world.write("r.yaml", stream("rows.json", "file") + rule("all", sql, "{file: {path: out.jsonl}}"))
    world.reload()
    assert [problem.render() for problem in world.manager.problems if problem.is_error] == []
    turn_until(world, lambda: bool(written(world)))
    assert written(world) == [{"k": "c", "scanned": "c", "found": "c"}]


def test_a_table_that_is_read_again_takes_the_rows_that_changed(world: World) -> None:
    path = world.folder / "input" / "site.csv"
    path.write_text("k,v\na,1\nb,2\n", "utf-8")
    extra = json.dumps({"fileType": "csv", "hasHeader": True, "interval": 10})
    world.write(
        "r.yaml",
        f"""
tables:
  s: {{kind: lookup, key: k, type: file, datasource: site.csv,
      columns: {{k: string, v: bigint}}, extra: {extra}}}
""",
    )
    world.reload()
    shown = "select k, v from s order by k"
    turn_until(world, lambda: len(world.engine.query(shown).rows) == 2)
    path.with_suffix(".draft").write_text("k,v\na,1\nb,3\nc,1\n", "utf-8")
    path.with_suffix(".draft").replace(path)  # a reader sees it whole
    turn_until(world, lambda: len(world.engine.query(shown).rows) == 3)
    assert world.engine.query(shown).rows == [{"k": "a", "v": 1}, {"k": "b", "v": 3}, {"k": "c", "v": 1}]
    time.sleep(0.05)
    world.gateway.turn()
    assert world.gateway.sources["s"].stats["messages"] == 4


def test_what_is_no_row_is_a_dead_letter_and_a_missing_file_is_looked_for_again(world: World) -> None:
    deploy(world, stream("rows.jsonl", "file", fileType="lines", interval=10))
    turn_until(world, lambda: world.gateway.sources["s"].stats["errors"] > 0)
    (world.folder / "input" / "rows.jsonl").write_text('nonsense\n{"a": 2}\n', "utf-8")
    assert rows(world, 1)[0]["a"] == 2
    assert world.gateway.refusals.rejected


@pytest.mark.parametrize("settings", [{"interval": 60_000}, {"loop": True}])
def test_a_missing_file_is_not_looked_for_without_a_pause(world: World, settings: dict[str, Any]) -> None:
    deploy(world, stream("rows.json", "file", **settings))
    turn_until(world, lambda: world.gateway.sources["s"].stats["errors"] > 0)
    time.sleep(0.2)
    assert world.gateway.sources["s"].stats["errors"] == 1


TEXT = b'[{"a": 7}]'
GZIP, ZSTD = gzip.compress(TEXT, mtime=0), zstandard.ZstdCompressor().compress(TEXT)


@pytest.mark.parametrize(
    ("kind", "archive", "damaged"),
    [("gzip", GZIP, GZIP[:-9]), ("gzip", GZIP, GZIP[:12] + b"~" + GZIP[13:]), ("zstd", ZSTD, b"~" + ZSTD)],
    ids=["cut off", "other bytes", "no archive"],
)
def test_a_damaged_archive_is_read_again(world: World, kind: str, archive: bytes, damaged: bytes) -> None:
    path = world.folder / "input" / "rows.json"
    path.write_bytes(damaged)
    deploy(world, stream("rows.json", "file", decompression=kind, interval=10))
    turn_until(world, lambda: world.gateway.sources["s"].stats["errors"] > 1)
    path.write_bytes(archive)
    assert rows(world, 1)[0]["a"] == 7


def test_a_link_out_of_the_folder_is_not_followed(world: World) -> None:
    (world.folder / "secret.json").write_text("[1]", "utf-8")
    (world.folder / "input" / "rows.json").symlink_to(world.folder / "secret.json")
    deploy(world, stream("rows.json", "file", interval=10))
    turn_until(world, lambda: world.gateway.sources["s"].stats["errors"] > 0)
    assert world.gateway.sources["s"].stats["messages"] == 0


# --- simulator ----------------------------------------------------------------------------------------------


def test_a_simulator_repeats_its_rows(world: World) -> None:
    deploy(world, stream("x", "simulator", data=[{"a": 1}, {"a": 2}], interval=1))
    assert [row["a"] for row in rows(world, 3)][:3] == [1, 2, 1]


def test_a_simulator_may_end(world: World) -> None:
    deploy(world, stream("x", "simulator", data='[{"a": 1}]', interval=1, loop=False))
    assert [row["a"] for row in rows(world, 1)] == [1]


def test_a_source_ends_with_the_last_rule_that_reads_it(world: World) -> None:
    deploy(world, stream("x", "simulator", interval=1))
    assert "s" in world.gateway.sources
    world.write("r.yaml", stream("x", "simulator", interval=1))
    world.reload()
    assert "s" not in world.gateway.sources


# --- HTTP ---------------------------------------------------------------------------------------------------


class Answers(BaseHTTPRequestHandler):
    """Answers with what the test has put into `texts`, the last one for ever."""

    texts: ClassVar[list[tuple[int, str]]] = []
    asked: ClassVar[list[tuple[str, str]]] = []

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers.get("Authorization", "")))
        status, text = self.texts.pop(0) if len(self.texts) > 1 else self.texts[0]
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    do_POST = do_GET

    def log_message(self, *args: Any) -> None:
        """Be quiet."""


@pytest.fixture
def server() -> Iterator[str]:
    Answers.texts, Answers.asked = [], []
    running = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{running.server_address[1]}"
    running.shutdown()
    running.server_close()


def test_a_server_is_asked_again_and_again(world: World, server: str) -> None:
    Answers.texts += [(200, '[{"a": 1}, {"a": 2}]'), (500, "x"), (200, '{"a": 3}')]
    world.sections = {"httppull": {"plant": {"url": server, "interval": 5}}}
    world.crash()
    deploy(world, stream("api/v1?x=1", "httppull", form=', CONF_KEY="plant"', incremental=True))
    assert [row["a"] for row in rows(world, 3)] == [1, 2, 3]
    assert world.gateway.sources["s"].stats["errors"] == 1
    assert Answers.asked[0][0] == "/api/v1?x=1"


@pytest.mark.parametrize("refused", [0, 1])
def test_a_token_is_renewed_once_if_it_is_refused(world: World, server: str, refused: int) -> None:
    """The next interval is an hour away."""
    Answers.texts += [(200, '{"token": "t1"}'), (401, ""), (200, '{"token": "t2"}')]
    Answers.texts += [(401, "")] if refused else [(200, '{"a": 1}')]
    extra: dict[str, Any] = {"headers": {"Authorization": "{{.token}}"}}
    extra["oAuth"] = {"access": {"url": f"{server}/token"}}
    deploy(world, stream(f"{server}/in", "httppull", interval=3_600_000, **extra))
    source = world.gateway.sources["s"]
    turn_until(world, lambda: source.stats["errors"] + source.stats["messages"] == 1)
    assert Answers.asked == [("/token", ""), ("/in", "t1"), ("/token", ""), ("/in", "t2")]
    assert source.stats["errors"] == refused


def post(world: World, path: str, body: str, method: str = "POST") -> int:
    assert world.push.address is not None
    connection = http.client.HTTPConnection(*world.push.address, timeout=PATIENCE_S)
    connection.request(method, path, body)
    status = connection.getresponse().status
    connection.close()
    return status


def test_a_sender_is_answered_when_its_message_is_safe(world: World) -> None:
    deploy(world, stream("/api/data", "httppush"))
    found: list[int] = []
    sender = threading.Thread(target=lambda: found.append(post(world, "/api/data", '{"a": 1}')))
    sender.start()
    time.sleep(0.05)
    assert found == []  # the loop has not turned
    assert rows(world, 1)[0]["a"] == 1
    turn_until(world, lambda: found != [])
    assert found == [200]
    assert post(world, "/other", "{}") == 404
    assert post(world, "/api/data", "{}", "PUT") == 405
    assert post(world, "/api/data", "x" * 2_000) == 413
    world.gateway.sources["s"].pause()
    assert post(world, "/api/data", "{}") == 503


# --- what check says ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (stream("rows.json", "file", fileTyp="csv"), "fileTyp: is not known"),
        (stream("rows.json", "file", follow=True), "growing files"),
        (stream("rows.json", "file", path="../x"), "below the input folder"),
        (stream("x.csv", "file", form=', DELIMITER=";;"', fileType="csv"), "must be one character"),
        (stream("x", "simulator", data=[]), "data"),
        (stream("x", "httppull", method="fetch"), "method"),
        (
            'streams:\n  - \'CREATE STREAM s () WITH (DATASOURCE="x", TYPE="file", EXTRA="[1]")\'\n',
            "JSON object",
        ),
        ('streams:\n  - \'CREATE STREAM s () WITH (DATASOURCE="x", TYPE="fiel")\'\n', "did you mean 'file'"),
        (
            stream("x.json", "file", interval=1000).replace("CREATE STREAM", "CREATE TABLE"),
            "when a rule begins",
        ),
    ],
)
def test_wrong_settings_are_found_before_anything_runs(world: World, text: str, words: str) -> None:
    world.write("r.yaml", text)
    world.reload()
    (problem,) = [problem.render() for problem in world.manager.problems if problem.is_error]
    assert "E101" in problem
    assert words in problem


def test_a_section_that_is_not_there_stops_the_stream_only(world: World) -> None:
    deploy(world, stream("x", "simulator", form=', CONF_KEY="nosuch"'))
    assert "s" not in world.gateway.sources
    assert "sources.simulator" in world.manager.failed_sources["s"]
