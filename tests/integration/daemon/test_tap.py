"""Listening to a running gateway: `penstock tap` and `penstock record`, with a real daemon and broker."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.integration.daemon.support import ROOT, STREAM, Process, daemon, publisher
from tests.support.brokers import Mosquitto
from tests.support.waiting import PATIENCE_S, wait_for

pytestmark = pytest.mark.broker

HOT = STREAM + "rules:\n  - id: hot\n    sql: SELECT n FROM m WHERE n > 2\n    actions: [{nop: {}}]\n"


@pytest.fixture(scope="module")
def gateway(broker: Mosquitto, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with daemon(tmp_path_factory.mktemp("tap"), broker.url, {"hot.yaml": HOT}) as running:
        running.wait_ready()
        yield running


@contextmanager
def command(gateway: Process, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A command that listens; it is listening when the block begins."""
    line = [
        sys.executable,
        "-m",
        "edge.cli",
        *words,
        "--address",
        gateway.address,
        "--data",
        str(gateway.data),
    ]
    wait_for(lambda: gateway.status()["listeners"] == 0, "the end of the listener before")
    with subprocess.Popen(
        line, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            wait_for(lambda: gateway.status()["listeners"] == 1, "the listener")
            yield process
        finally:
            process.kill()


def lines(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    out, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, errors
    return [json.loads(line) for line in out.splitlines()]


def test_events_of_a_stream_with_a_condition(gateway: Process, broker: Mosquitto) -> None:
    with (
        publisher(broker.port) as plant,
        command(gateway, "tap", "m", "--where", "m.n > 1", "--count", "3") as tap,
    ):
        for number in range(3):
            plant.send("plant/7", {"n": number, "beside": [1]})
        plant.send("plant/7", b"{nonsense")
        plant.send("plant/8", {"n": 9})
        found = lines(tap)
    events = [(line["stream"], line["topic"], line["event"]) for line in found if "event" in line]
    assert events == [("m", "plant/7", {"n": 2, "beside": [1]}), ("m", "plant/8", {"n": 9})]
    (letter,) = [line["dead_letter"] for line in found if "dead_letter" in line]
    assert letter["topic"] == "plant/7"
    assert "JSON is malformed" in letter["reason"]


def test_rows_of_a_rule(gateway: Process, broker: Mosquitto) -> None:
    with publisher(broker.port) as plant, command(gateway, "tap", "hot", "--count", "1") as tap:
        plant.send("plant/7", {"n": 1})
        plant.send("plant/7", {"n": 5})
        (line,) = lines(tap)
    assert (line["rule"], line["rows"]) == ("hot", [{"n": 5}])


def test_what_is_not_there_is_named(gateway: Process) -> None:
    for words, text in (
        (["tap", "hott"], "there is no stream or rule 'hott'; did you mean 'hot'?"),
        (["tap", "m", "--where", "n >"], "n >"),
    ):
        line = [
            sys.executable,
            "-m",
            "edge.cli",
            *words,
            "--address",
            gateway.address,
            "--data",
            str(gateway.data),
        ]
        done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert done.returncode == 2
        assert text in done.stderr


def test_nobody_without_the_token_listens(gateway: Process) -> None:
    import http.client

    host, _, port = gateway.address.rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=PATIENCE_S)
    for path in ("/tap/m", "/why/hot"):
        connection.request("GET", path)
        response = connection.getresponse()
        assert response.status == 401
        response.read()
    connection.close()


def test_a_recording_is_replayed(gateway: Process, broker: Mosquitto, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with (
        publisher(broker.port) as plant,
        command(gateway, "record", "--for", "5s", "-o", str(path)) as record,
    ):
        for number in (1, 4, 5):
            plant.send("plant/7", {"n": number})
        _, errors = record.communicate(timeout=PATIENCE_S)
        assert (record.returncode, errors) == (0, "3 events recorded\n")
    recorded = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["stream"], line["topic"], line["event"]) for line in recorded] == [
        ("m", "plant/7", {"n": 1}),
        ("m", "plant/7", {"n": 4}),
        ("m", "plant/7", {"n": 5}),
    ]


def test_a_listener_that_hangs_up_is_forgotten(gateway: Process) -> None:
    with command(gateway, "tap", "m"):
        pass
    wait_for(lambda: gateway.status()["listeners"] == 0, "the end of the listener")
