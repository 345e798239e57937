"""Results that the loop publishes: one connection for all actions, a broker that goes
away, messages it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.broker.conftest import Consumer, StartSource, start_source
from tests.integration.daemon.support import STREAM, daemon, publisher
from tests.support.brokers import Mosquitto, mosquitto
from tests.support.waiting import wait_for

pytestmark = pytest.mark.broker

__all__ = ["start_source"]

RULES = (
    STREAM
    + """
rules:
  - id: hot
    sql: SELECT n FROM m WHERE n > 0
    actions: [{mqtt: {topic: 'results/{{.n}}', sendSingle: true}}]
  - id: all
    sql: SELECT n FROM m
    actions: [{mqtt: {topic: everything, qos: 0, sendSingle: true}}]
"""
)


def numbers(seen: Consumer, prefix: str) -> list[int]:
    return [json.loads(payload)["n"] for topic, payload, *_ in seen.messages if topic.startswith(prefix)]


def test_actions_share_a_connection(tmp_path: Path, broker: Mosquitto, start_source: StartSource) -> None:
    before = (broker.folder / "mosquitto.log").read_text()  # of the tests that had this broker earlier
    _, seen = start_source(
        broker.url, {"results/#": 1, "everything": 0}, client_id="watcher", status_prefix=None
    )
    with daemon(tmp_path, broker.url, {"rules.yaml": RULES}) as gateway, publisher(broker.port) as plant:
        gateway.wait_ready()
        for n in range(50):
            plant.send("plant/a", {"n": n})
        wait_for(lambda: len(seen.messages) >= 99, what="the results")
        assert numbers(seen, "results") == list(range(1, 50))
        assert numbers(seen, "everything") == list(range(50))
        told = (broker.folder / "mosquitto.log").read_text().removeprefix(before)
        assert told.count("New client connected") == 4, (
            "two of the test, one for the streams, one for all results"
        )
        # The broker confirms a message after it has passed it on.
        wait_for(lambda: gateway.status()["rules"]["hot"]["actions"][0]["sent"] == 49, "the confirmations")
        assert gateway.stop() == 0


def test_results_wait_for_a_broker_that_is_away(
    tmp_path: Path, broker: Mosquitto, start_source: StartSource
) -> None:
    """The broker of the results is another one than that of the streams, and starts last."""
    with mosquitto(tmp_path / "other") as other:
        other.stop()
        rules = RULES.replace("topic:", f"server: '{other.url}', retryInterval: 50ms, topic:")
        with (
            daemon(tmp_path / "gateway", broker.url, {"rules.yaml": rules}) as gateway,
            publisher(broker.port) as plant,
        ):
            gateway.wait_ready()
            for n in range(1, 4):
                plant.send("plant/a", {"n": n})
            wait_for(
                lambda: gateway.status()["rules"]["hot"]["actions"][0]["queued"] == 3, what="waiting results"
            )
            assert gateway.status()["rules"]["hot"]["actions"][0]["state"] == "retrying"
            other.start()
            wait_for(lambda: gateway.status()["rules"]["hot"]["actions"][0]["queued"] == 0, what="delivery")
            stats = gateway.status()["rules"]["hot"]["actions"][0]
            assert (stats["state"], stats["sent"], stats["last_error"]) == ("ok", 3, "")


def test_a_topic_that_is_none_becomes_a_dead_letter(tmp_path: Path, broker: Mosquitto) -> None:
    rules = RULES.replace("SELECT n FROM m WHERE n > 0", "SELECT n, t FROM m WHERE n > 0").replace(
        "{{.n}}", "{{.t}}"
    )
    with daemon(tmp_path, broker.url, {"rules.yaml": rules}) as gateway, publisher(broker.port) as plant:
        gateway.wait_ready()
        plant.send("plant/a", {"n": 1, "t": "x" * 70_000})
        letters = tmp_path / "data" / "dead-letters" / "dead-letters.jsonl"
        wait_for(lambda: letters.exists() and letters.read_text().endswith("\n"), what="the dead letter")
        assert "is no topic to publish to" in json.loads(letters.read_text().splitlines()[0])["reason"]
        assert gateway.status()["rules"]["hot"]["actions"][0]["rejected"] == 1
