"""kill -9 at any moment: nothing acknowledged is lost, nothing counts twice."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from pathlib import Path

import pytest

from tests.broker.conftest import StartSource, start_source
from tests.integration.daemon.support import STREAM, Process, bucket_rows, publisher
from tests.support.brokers import Mosquitto
from tests.support.waiting import PATIENCE_S, wait_for

pytestmark = pytest.mark.broker

__all__ = ["start_source"]

EACH = (
    STREAM
    + """
rules:
  - id: each
    sql: SELECT n FROM m
    actions: [{cloud: {keys: [n], window: 60000}}]
"""
)

TENS = (
    STREAM
    + """
rules:
  - id: tens
    sql: SELECT count(*) AS c, sum(n) AS total FROM m GROUP BY COUNTWINDOW(10)
    actions: [{cloud: {merge: {c: count, total: sum}, types: {total: int}, window: 60000}}]
"""
)


def gateway_for(folder: Path, broker: Mosquitto, text: str) -> Process:
    bucket = folder / "bucket"
    process = Process(folder, broker.url, ("--upload", str(bucket), "--upload-interval", "100ms"))
    process.write_rule("rule.yaml", text)
    return process


def settled(gateway: Process, taken_in: int) -> bool:
    """Whether all messages are in, acknowledged, and uploaded."""
    status = gateway.status()
    return bool(
        status["sources"]["mqtt"]["connected"]
        and status["intake"]["unacknowledged"] == 0
        and status["spool"]["rows"] == 0
        and taken_in
    )


def test_between_two_uploads(broker: Mosquitto, tmp_path: Path) -> None:
    """Some rows are uploaded, others only spooled, when the daemon dies."""
    gateway = gateway_for(tmp_path, broker, EACH)
    try:
        gateway.start()
        gateway.wait_ready()
        with publisher(broker.port) as plant:
            for number in range(20):
                plant.send("plant/x", {"n": number})
            wait_for(lambda: len(bucket_rows(tmp_path / "bucket")) >= 20, what="the first upload")
            gateway.kill()
            gateway.arguments = ("--upload", str(tmp_path / "bucket"), "--upload-interval", "3600000ms")
            gateway.start()
            gateway.wait_ready()
            for number in range(20, 40):
                plant.send("plant/x", {"n": number})
            wait_for(lambda: gateway.status()["spool"]["rows"] == 20, what="rows in the spool")
            gateway.kill()
            for number in range(40, 50):
                plant.send("plant/x", {"n": number})  # nobody is there; the broker keeps them
        gateway.arguments = ("--upload", str(tmp_path / "bucket"), "--upload-interval", "100ms")
        gateway.start()
        wait_for(lambda: len(bucket_rows(tmp_path / "bucket")) >= 50, what="the last upload")
        assert gateway.stop() == 0
    finally:
        gateway.kill()
    counts = Counter(row["keys"]["n"] for row in bucket_rows(tmp_path / "bucket"))
    assert counts == Counter(range(50))


@pytest.mark.slow
@pytest.mark.parametrize("text", [EACH, TENS], ids=["each", "tens"])
def test_under_load_at_random_moments(broker: Mosquitto, tmp_path: Path, text: str) -> None:
    """Messages flow without a pause while the daemon is killed again and again."""
    total = 3_000
    seed = random.randrange(1_000_000)
    dice = random.Random(seed)
    gateway = gateway_for(tmp_path, broker, text)
    sent = threading.Event()

    def publish() -> None:
        with publisher(broker.port) as plant:
            for number in range(total):
                plant.send("plant/x", {"n": number})
        sent.set()

    thread = threading.Thread(target=publish)
    try:
        gateway.start()
        gateway.wait_ready()
        thread.start()
        for _ in range(4):
            threading.Event().wait(dice.uniform(0.05, 0.6))
            gateway.kill()
            gateway.start()
        assert sent.wait(PATIENCE_S)
        wait_for(lambda: received(tmp_path, text) >= total, f"all messages, seed {seed}")
        assert gateway.stop() == 0
    finally:
        gateway.kill()
        thread.join(PATIENCE_S)
    rows = bucket_rows(tmp_path / "bucket")
    if text is EACH:
        assert Counter(row["keys"]["n"] for row in rows) == Counter(range(total)), seed
    else:
        values = [{value["as"]: value["int"] for value in row["values"]} for row in rows]
        assert sum(value["total"] for value in values) == sum(range(total)), seed
        assert [value["c"] for value in values] == [10] * (total // 10), seed


@pytest.mark.slow
def test_results_of_messages_that_no_commit_held(
    broker: Mosquitto, tmp_path: Path, start_source: StartSource
) -> None:
    """A rule without state: its messages are acknowledged when the broker has the results,
    and each result comes."""
    total, seed = 3_000, random.randrange(1_000_000)
    dice = random.Random(seed)
    rule = (
        "rules:\n  - "
        "{id: pass, sql: SELECT n FROM m, actions: [{mqtt: {topic: results, sendSingle: true}}]}\n"
    )
    gateway = gateway_for(tmp_path, broker, STREAM + rule)
    _, seen = start_source(broker.url, {"results": 1}, client_id="watcher", status_prefix=None)
    found: set[int] = set()

    def is_complete() -> bool:
        found.update(json.loads(payload)["n"] for _, payload, *_ in seen.messages)
        return len(found) == total

    try:
        gateway.start()
        gateway.wait_ready()
        with publisher(broker.port) as plant:
            for number in range(total):
                plant.send("plant/x", {"n": number}, wait=number % 100 == 99)
                if dice.random() < 4 / total:
                    gateway.kill()
                    gateway.start()
        wait_for(is_complete, f"all results, seed {seed}")
        # A message whose result the broker has confirmed needs no commit; one that waits for it longer does.
        assert gateway.status()["journal"]["commits"] < total / 10
    finally:
        gateway.kill()


def received(folder: Path, text: str) -> int:
    rows = bucket_rows(folder / "bucket")
    return len(rows) * (1 if text is EACH else 10)


def test_a_journal_whose_end_was_removed_is_told_and_new_rows_are_not_taken_for_old_ones(
    broker: Mosquitto, tmp_path: Path
) -> None:
    gateway = gateway_for(tmp_path, broker, EACH)
    try:
        with publisher(broker.port) as plant:
            gateway.start()
            gateway.wait_ready()
            assert "event=journal.behind" not in gateway.log()
            for number in range(10):
                plant.send("plant/x", {"n": number})
            wait_for(lambda: len(bucket_rows(tmp_path / "bucket")) == 10, what="the first rows")
            gateway.kill()
            gateway.start()
            gateway.wait_ready()
            assert "event=journal.behind" not in gateway.log()
            gateway.kill()
            for path in (gateway.data / "journal").glob("*.journal"):
                path.unlink()
            gateway.start()
            gateway.wait_ready()
            assert "level=error event=journal.behind rule=each rows=10 note=" in gateway.log()
            plant.send("plant/x", {"n": 10})
            wait_for(lambda: len(bucket_rows(tmp_path / "bucket")) == 11, what="the new row")
            assert gateway.stop() == 0
            gateway.start()
            assert "event=journal.behind" not in gateway.log()
    finally:
        gateway.kill()
