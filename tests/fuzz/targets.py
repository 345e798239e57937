"""What is given hostile input, and how each may answer. A target raises where the answer is none that is
documented."""

from __future__ import annotations

import http.client
import random
import socket
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cloud_sync.errors import SpoolError
from cloud_sync.records import Record
from cloud_sync.spool import Spool
from edge.base.message import BadMessage, Message
from edge.intake.codecs import CodecOptions, decoder_for
from edge.intake.sources.base import ConnectionLost
from edge.intake.sources.mqtt.publish_parser import PublishParser
from edge.intake.sources.mqtt.publishing import encoded_length
from edge.journal import pages
from edge.journal.disk import Disk
from edge.journal.reader import JournalPass, read, segments
from edge.journal.record import Tick
from edge.journal.writer import Journal, cut
from edge.monitor.http import StatusServer
from rules.compile import compile_rules
from rules.lint.check import lint
from rules.loader import load_text, unite
from sql import Engine, SqlError, plan_rule
from tests.support.streams import catalog_of
from tests.support.waiting import PATIENCE_S

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Target:
    """`good` inputs, and what takes a damaged one. `open` gives that function for as long as it is used;
    `moment` inputs take a few seconds."""

    name: str
    good: Sequence[bytes]
    open: Callable[[], Any]
    moment: int


PAYLOADS = (
    b'{"dev":"pump-1","temp":20.5,"ok":true,"tags":["a","b"],"deep":{"a":{"b":[1,2,{"c":null}]}}}',
    b'[1,2.5e3,-0,"\\u00e9",{}]',
    b"a,b,c\n1,2.5,x\n",
    b"dev=pump&temp=20.5&x=%20y",
    b"\x93\x01\x02\x03",
)


@contextmanager
def payloads() -> Iterator[Callable[[bytes], None]]:
    """Codecs: rows and reasons, never an error."""
    options = CodecOptions(bytes_max=10_000)
    decoders = [
        decoder_for(name, columns, options)
        for name in ("json", "delimited", "urlencoded", "binary")
        for columns in (None, frozenset({"dev", "temp"}))
    ]

    def take(data: bytes) -> None:
        for decoder in decoders:
            rows, bad = decoder.decode_many([data, PAYLOADS[0], data])
            assert all(isinstance(reason, str) and reason for _, reason in bad)
            assert rows is not None

    yield take


@contextmanager
def rule_files() -> Iterator[Callable[[bytes], None]]:
    """`penstock check`: problems with a place in the file."""

    def take(data: bytes) -> None:
        text = data.decode("utf-8", "replace")
        file = load_text(text, "a.yaml")
        compiled = compile_rules(unite([file]))
        lines = sum(text.count(end) for end in "\n\r\x85\u2028\u2029") + 2
        for problem in [*file.problems, *compiled.problems, *lint(compiled, {})]:
            assert 1 <= problem.line <= lines, problem.render()
            assert problem.column >= 1
            assert problem.render()

    yield take


SQL = (
    b"SELECT dev, avg(temp) AS a FROM m WHERE temp > 10 AND dev LIKE 'p' GROUP BY TUMBLINGWINDOW(ss, 10) "
    b"HAVING a > 3",
    b"SELECT a.dev, b.temp - a.temp AS d FROM m AS a JOIN m AS b ON a.dev = b.dev "
    b"GROUP BY HOPPINGWINDOW(ss, 10, 5)",
    b"SELECT lag(temp) OVER (PARTITION BY dev) AS l, "
    b"CASE WHEN temp IN (1, 2) THEN 'x' ELSE upper(dev) END AS c FROM m",
    b"select dev, prev(1, temp) as p from m#length(5) output last every 2 seconds",
    b"select * from pattern [every a=m(temp > 10) -> b=m(dev = a.dev) where timer:within(10 sec)]",
    b"SELECT count(*) FILTER (WHERE temp BETWEEN 1 AND 2) AS c, window_end() FROM m "
    b"GROUP BY SESSIONWINDOW(mi, 5, 1)",
)


@contextmanager
def sql() -> Iterator[Callable[[bytes], None]]:
    """Parser, binder, planner and engine: `SqlError` with a span inside the text, or rows."""
    catalog = catalog_of("CREATE STREAM m (dev STRING, temp FLOAT)")

    def take(data: bytes) -> None:
        text = data.decode("utf-8", "replace")
        try:
            plan = plan_rule(text, catalog)
            engine = Engine(catalog)
            engine.deploy("r", plan, 0)
        except SqlError as error:
            for problem in error.problems:
                assert 0 <= problem.span.start <= problem.span.end <= len(text), problem
            return
        engine.push("m", [{"dev": "pump", "temp": 20.5}, {"dev": None, "temp": -1e308}], 1_000)
        engine.advance(2_000)

    yield take


def _publish(topic: bytes, payload: bytes, qos: int, properties: bytes) -> bytes:
    body = len(topic).to_bytes(2, "big") + topic + (b"\x00\x07" if qos else b"") + properties + payload
    return bytes([0x30 | qos << 1]) + encoded_length(len(body)) + body


PACKETS = (
    _publish(b"plant/1", PAYLOADS[0], 1, b"") * 3,
    _publish(b"plant/2", b"x" * 300, 0, b"\x00") * 2,
    b"\x20\x02\x00\x00" + _publish("plänt".encode(), b"1", 1, b"\x02\x01\x01") + b"\x40\x02\x00\x01",
    b"\xd0\x00",
)


@contextmanager
def packets() -> Iterator[Callable[[bytes], None]]:
    """Packets from the broker: messages, bad messages, or `ConnectionLost`."""
    dice = random.Random(0)

    def take(data: bytes) -> None:
        for has_properties in (False, True):
            parser = PublishParser(1, has_properties, 5_000, lambda command, body: None)
            batch: list[Message] = []
            bad: list[BadMessage] = []
            at = 0
            with suppress(ConnectionLost):
                while at < len(data):
                    size = dice.choice((1, 7, 100, 5_000))
                    parser.feed(data[at : at + size], batch, bad)
                    at += size
            parser.cut_off_id()
            assert all(isinstance(payload, bytes) and topic for topic, payload, _, _ in batch)

    yield take


def _journal_file() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        journal = Journal(Path(folder), 0, segment_bytes=100_000, compression="zlib")
        for number in range(12):
            journal.append_batch(number, [(f"t/{number % 3}", PAYLOADS[0] * (number % 5), number + 1, 2)])
            journal.append(Tick(number))
            if number % 4 == 0:
                journal.sync()
        journal.sync()
        journal.close()
        (path,) = [segment.path for segment in segments(Path(folder))]
        return path.read_bytes()


@contextmanager
def journal_files() -> Iterator[Callable[[bytes], None]]:
    """The journal: what is intact is read, damage is told of, and a new run can go on behind it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def take(data: bytes) -> None:
            for path in folder.iterdir():
                path.unlink()
            (folder / f"{0:020}.journal").write_bytes(data)
            reading = JournalPass()
            messages = sum(len(entry.messages) for entry in read(folder, 0, reading))
            assert messages <= 12
            cut(folder, reading.end, Disk())
            journal = Journal(folder, reading.end, segment_bytes=100_000, compression="none")
            journal.append(Tick(99))
            journal.sync()
            journal.close()
            again = [entry.record for entry in read(folder, 0, JournalPass())]
            assert again[-1] == Tick(99)

        yield take


@contextmanager
def snapshot_files() -> Iterator[Callable[[bytes], None]]:
    """Snapshots, the index and behind it the pages: the state that was written, or ValueError or OSError."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "1.snapshot"

        def take(data: bytes) -> None:
            path.write_bytes(data[: len(INDEX)])
            pages.pages_path(Path(folder), 1).write_bytes(data[len(INDEX) :])
            with suppress(ValueError, OSError):
                assert pages.read(path) == STATE

        yield take


STATE = {"version": 1, "at_ms": 5, "raw": b"ab", "rules": {"a": {"n": 1.5}, "b": ["x", None]}}


INDEX, PAGES = pages.encode(STATE, 1, pages.NOTHING, "run")


def _spool_file() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spool.db"
        with closing(Spool(path, "gw")) as spool:
            spool.append([Record("r", "2026-01-01", b'{"n":%d}' % number) for number in range(20)], 0)
            spool.commit(0)
        return path.read_bytes()


@contextmanager
def spool_files() -> Iterator[Callable[[bytes], None]]:
    """The spool's database: it opens, or says why it does not."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "spool.db"

        def take(data: bytes) -> None:
            for file in path.parent.iterdir():
                file.unlink()
            path.write_bytes(data)
            with suppress(SpoolError), closing(Spool(path, "gw")) as spool:
                oldest = spool.outgoing.oldest()
                if oldest is not None:
                    assert (
                        len(spool.outgoing.take(oldest.rule, oldest.date, 100, 10**6, schema=oldest.schema))
                        <= 20
                    )
                spool.append([Record("r", "2026-01-01", b"{}")], 0)
                spool.commit(0)

        yield take


class _Gateway:
    """A gateway that answers."""

    def metrics_text(self) -> str:
        return "penstock_rules 1\n"

    def status(self) -> dict[str, Any]:
        return {}

    def not_ready(self) -> list[str]:
        return []

    def ping(self) -> None:
        """It has turned."""

    def recovering(self) -> str | None:
        return None


REQUESTS = (
    b"GET /status HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer x\r\n\r\n",
    b"POST /rules HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello",
    b"GET /why/rule?at=5 HTTP/1.0\r\n\r\n",
    b"GET /query?sql=SELECT%20*%20FROM%20t HTTP/1.1\r\nHost: [::1]\r\nConnection: keep-alive\r\n\r\n",
)


@contextmanager
def requests() -> Iterator[Callable[[bytes], None]]:
    """HTTP: whatever one connection brings, the next one is answered."""
    server = StatusServer("127.0.0.1", 0, _Gateway())
    address = ("127.0.0.1", server.port)
    try:

        def take(data: bytes) -> None:
            with socket.create_connection(address, PATIENCE_S) as connection, suppress(OSError):
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                connection.settimeout(0.05)
                connection.recv(65_536)
            other = http.client.HTTPConnection(*address, timeout=PATIENCE_S)
            try:
                other.request("GET", "/healthz")
                assert other.getresponse().status == 200
            finally:
                other.close()

        yield take
    finally:
        server.close()


EXAMPLES = tuple(path.read_bytes() for path in sorted((ROOT / "rules" / "examples").glob("*.yaml")))

TARGETS = (
    Target("payloads", PAYLOADS, payloads, 8_000),
    Target("rules", EXAMPLES, rule_files, 1_000),
    Target("sql", SQL, sql, 1_200),
    Target("packets", PACKETS, packets, 50_000),
    Target("journal", (_journal_file(),), journal_files, 150),
    Target("snapshots", (INDEX + PAGES,), snapshot_files, 1_000),
    Target("spool", (_spool_file(),), spool_files, 3_000),
    Target("http", REQUESTS, requests, 1_500),
)
