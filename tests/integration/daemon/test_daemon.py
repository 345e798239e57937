"""The daemon as a whole: real process, real broker, real files."""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.daemon.support import ROOT, STREAM, daemon, publisher
from tests.support.brokers import Mosquitto, amqtt
from tests.support.waiting import PATIENCE_S, wait_for

STOPPING = [
    number
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    if signal.getsignal(number) is not signal.SIG_IGN
]
"""The signals that stop a gateway. It ignores those that whoever starts it ignores, as nohup does SIGHUP; so
do the gateways of tests that run under nohup."""

HOT = (
    STREAM
    + """
rules:
  - id: hot
    sql: SELECT device, temp FROM m WHERE temp > 60
    actions: [{file: {path: hot.jsonl, sendSingle: true}}]
"""
)

COUNT = (
    STREAM
    + """
rules:
  - id: three
    sql: SELECT sum(n) AS total, count(*) AS c FROM m GROUP BY COUNTWINDOW(3)
    actions: [{file: {path: three.jsonl, sendSingle: true}}]
"""
)


@pytest.mark.broker
def test_from_the_broker_to_a_file(broker: Mosquitto, tmp_path: Path) -> None:
    with daemon(tmp_path, broker.url, {"hot.yaml": HOT}) as gateway, publisher(broker.port) as plant:
        gateway.wait_ready()
        plant.send("plant/a", {"device": "p1", "temp": 61.5})
        plant.send("plant/b", {"device": "p2", "temp": 20})
        plant.send("plant/c", {"device": "p3", "temp": 99}, qos=0)
        wait_for(lambda: len(gateway.output("hot.jsonl")) == 2, what="two results")
        assert gateway.output("hot.jsonl") == [{"device": "p1", "temp": 61.5}, {"device": "p3", "temp": 99}]
        assert gateway.stop() == 0


def test_without_a_system_broker(tmp_path: Path) -> None:
    """The embedded broker speaks MQTT 3.1.1 only; nothing but Python packages is needed."""
    with (
        amqtt() as embedded,
        daemon(
            tmp_path, embedded.url, {"hot.yaml": HOT}, PENSTOCK__MQTT__PROTOCOL_VERSION="3.1.1"
        ) as gateway,
    ):
        gateway.wait_ready()
        with publisher(embedded.port) as plant:
            plant.send("plant/a", {"device": "p1", "temp": 61.5})
        wait_for(lambda: gateway.output("hot.jsonl"), what="a result")
        assert gateway.stop() == 0


@pytest.mark.broker
def test_rubbish_becomes_dead_letters_and_stops_nothing(broker: Mosquitto, tmp_path: Path) -> None:
    with daemon(tmp_path, broker.url, {"hot.yaml": HOT}) as gateway, publisher(broker.port) as plant:
        gateway.wait_ready()
        rubbish = [b"", b"{", b"\xff\xfe", b'{"temp": NaN}', b'"text"']
        for payload in rubbish:
            plant.send("plant/bad", payload)
        plant.send("plant/a", {"device": "p1", "temp": 70})
        plant.send("plant/a", {"device": "p1", "temp": "hot"})  # a text cannot be compared with 60
        plant.send("plant/a", {"device": "p2", "temp": 71})
        wait_for(lambda: len(gateway.output("hot.jsonl")) == 2, what="the good ones")
        letters_path = gateway.data / "dead-letters" / "dead-letters.jsonl"
        letters = [json.loads(line) for line in letters_path.read_text("utf-8").splitlines()]
        assert [base64.b64decode(letter["payload"]) for letter in letters if "payload" in letter] == rubbish
        assert {letter["topic"] for letter in letters if "payload" in letter} == {"plant/bad"}
        (error,) = [letter for letter in letters if "payload" not in letter]
        assert error["rule"] == "hot"
        assert error["rows"][0]["temp"] == "hot"
        counters = gateway.status()["rules"]["hot"]["counters"]
        assert (counters["errors"], counters["rows_out"]) == (1, 2)
        assert gateway.stop() == 0


@pytest.mark.broker
def test_one_rules_result_is_anothers_stream(broker: Mosquitto, tmp_path: Path) -> None:
    second = """
streams:
  - 'CREATE STREAM averages () WITH (TYPE="memory", DATASOURCE="averages/+")'
rules:
  - id: second
    sql: SELECT total * 10 AS tenfold FROM averages
    actions: [{file: {path: second.jsonl, sendSingle: true}}]
"""
    first = COUNT.replace(
        "{file: {path: three.jsonl, sendSingle: true}}", "{memory: {topic: averages/three}}"
    )
    with (
        daemon(tmp_path, broker.url, {"first.yaml": first, "second.yaml": second}) as gateway,
        publisher(broker.port) as plant,
    ):
        gateway.wait_ready()
        for number in (1, 2, 3):
            plant.send("plant/a", {"n": number})
        wait_for(lambda: gateway.output("second.jsonl"), what="the second rule's result")
        assert gateway.output("second.jsonl") == [{"tenfold": 60}]


@pytest.mark.broker
def test_pages(broker: Mosquitto, tmp_path: Path) -> None:
    with daemon(tmp_path, broker.url, {"hot.yaml": HOT}) as gateway, publisher(broker.port) as plant:
        gateway.wait_ready()
        plant.send("plant/a", {"device": "p1", "temp": 61.5})
        wait_for(lambda: gateway.status()["rules"]["hot"]["actions"][0]["sent"] == 1, what="the delivery")
        for path in (gateway.data, *gateway.data.rglob("*")):
            assert path.stat().st_mode & 0o077 == 0, f"others may read {path}"
        status, text = gateway.get("/metrics")
        values = {}
        for line in text.splitlines():
            if not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                values[name] = float(value)
        assert status == 200
        assert values['penstock_rule_events_total{rule="hot"}'] == 1
        assert values['penstock_delivery_sent_total{rule="hot",sink="file"}'] == 1
        assert values['penstock_intake_messages_total{stream="m"}'] == 1
        assert values['penstock_source_connected{source="mqtt"}'] == 1
        health = [sys.executable, "-m", "edge.cli", "health", "--address", gateway.address]
        assert subprocess.run(health, check=False, cwd=ROOT, capture_output=True).returncode == 0
        top = [
            sys.executable,
            "-m",
            "edge.cli",
            "top",
            "--once",
            "--interval",
            "100ms",
            "--address",
            gateway.address,
        ]
        top += ["--data", str(gateway.data)]
        shown = subprocess.run(top, check=False, cwd=ROOT, capture_output=True, text=True)
        assert "hot" in shown.stdout, shown
        assert gateway.stop() == 0
        assert subprocess.run(health, check=False, cwd=ROOT, capture_output=True).returncode == 2


def test_a_broker_that_is_absent_at_boot_makes_the_gateway_not_ready_but_running(tmp_path: Path) -> None:
    with daemon(tmp_path, "mqtt://127.0.0.1:1", {"hot.yaml": HOT}) as gateway:
        status, reasons = gateway.get("/readyz")
        assert status == 503
        assert reasons.startswith("mqtt: ")
        assert gateway.get("/healthz")[0] == 200
        assert gateway.status()["rules"]["hot"]["state"] == "running"
        assert gateway.stop() == 0


@pytest.mark.broker
def test_state_survives_a_stop(broker: Mosquitto, tmp_path: Path) -> None:
    with daemon(tmp_path, broker.url, {"three.yaml": COUNT}) as gateway, publisher(broker.port) as plant:
        gateway.wait_ready()
        plant.send("plant/a", {"n": 1})
        plant.send("plant/a", {"n": 2})
        wait_for(lambda: gateway.status()["rules"]["three"]["counters"]["events_in"] == 2, what="two events")
        assert gateway.stop() == 0
        plant.send("plant/a", {"n": 4})  # the broker keeps it for the gateway
        gateway.start()
        wait_for(lambda: gateway.output("three.jsonl"), what="the window")
        assert gateway.output("three.jsonl") == [{"total": 7, "c": 3}]
        assert "state=restored" in gateway.log()


@pytest.mark.broker
def test_a_second_signal_exits_at_once(broker: Mosquitto, tmp_path: Path) -> None:
    """The first one waits an hour for a sink that never answers; the operator may be in a hurry."""
    slow = HOT.replace("{file: {path: hot.jsonl, sendSingle: true}}", "{rest: {url: 'http://127.0.0.1:1/x'}}")
    with (
        daemon(tmp_path, broker.url, {"hot.yaml": slow}, PENSTOCK__SHUTDOWN_TIMEOUT_MS="3600000") as gateway,
        publisher(broker.port) as plant,
    ):
        gateway.wait_ready()
        plant.send("plant/a", {"device": "p1", "temp": 61.5})
        wait_for(lambda: gateway.status()["rules"]["hot"]["actions"][0]["retried"], what="a failed attempt")
        gateway.send(signal.SIGTERM)
        wait_for(lambda: "gateway.stopping" in gateway.log(), what="the first signal")
        gateway.send(signal.SIGTERM)
        wait_for(gateway.ended, "the end")


@pytest.mark.broker
def test_streams_whose_topics_contain_each_other_get_a_message_once(
    broker: Mosquitto, tmp_path: Path
) -> None:
    """mosquitto sends a copy for each subscription that matches, in MQTT 5."""
    streams = {"narrow": "plant/+/temp", "wide": "plant/#"}
    text = "streams:\n" + "".join(
        f"  - CREATE STREAM {name} () WITH (DATASOURCE='{topic}', FORMAT='json')\n"
        for name, topic in streams.items()
    )
    action = "actions: [{file: {path: NAME.jsonl, sendSingle: true}}]"
    rules = {
        name: f"  - {{id: {name}, sql: SELECT n FROM {name}, {action.replace('NAME', name)}}}\n"
        for name in streams
    }
    with (
        daemon(tmp_path, broker.url, {"a.yaml": text + "rules:\n" + "".join(rules.values())}) as gateway,
        publisher(broker.port) as plant,
    ):
        gateway.wait_ready()
        for number in range(5):
            plant.send("plant/7/temp", {"n": number})
        plant.send("plant/end", {"n": 5})
        wait_for(lambda: {"n": 5} in gateway.output("wide.jsonl"), what="the last message")
        assert gateway.output("wide.jsonl") == [{"n": number} for number in range(6)]
        wait_for(lambda: len(gateway.output("narrow.jsonl")) == 5, what="the narrow stream's results")
        assert gateway.output("narrow.jsonl") == [{"n": number} for number in range(5)]
        gateway.write_rule("a.yaml", text + "rules:\n" + rules["narrow"])
        wait_for(lambda: "wide" not in gateway.status()["rules"], what="the reload")
        wait_for(lambda: gateway.get("/readyz")[0] == 200, what="the narrower subscription")
        plant.send("plant/8/temp", {"n": 6})
        wait_for(
            lambda: {"n": 6} in gateway.output("narrow.jsonl"), what="a message on the narrower subscription"
        )


@pytest.mark.broker
@pytest.mark.parametrize("number", STOPPING)
def test_the_process_ends_with_its_last_log_line(
    broker: Mosquitto, tmp_path: Path, number: signal.Signals
) -> None:
    """No thread that waits holds it up. A terminal that is closed stops the gateway in order."""
    with daemon(tmp_path, broker.url, {"hot.yaml": HOT}) as gateway, publisher(broker.port) as plant:
        gateway.wait_ready()
        plant.send("plant/a", {"device": "p1", "temp": 61.5})
        gateway.send(number)
        wait_for(lambda: "gateway.stopped" in gateway.log(), what="the stop")
        wait_for(gateway.ended, "the end of the process")


@pytest.mark.broker
@pytest.mark.parametrize("number", STOPPING)
def test_a_signal_before_the_start_is_done_is_no_failure(tmp_path: Path, number: signal.Signals) -> None:
    """The process has imported the configuration's library, and not yet the daemon."""
    command = [sys.executable, "-m", "edge.cli", "run", str(tmp_path), "--data", str(tmp_path / "data")]
    child = subprocess.Popen(command, cwd=ROOT)
    maps = Path(f"/proc/{child.pid}/maps")
    wait_for(lambda: child.poll() is not None or "pydantic_core" in maps.read_text(), what="the imports")
    child.send_signal(number)
    assert child.wait(PATIENCE_S) == 0


def test_a_dead_sink_does_not_hold_up_the_stop_and_its_results_are_sent_later(
    broker: Mosquitto, tmp_path: Path
) -> None:
    dead = HOT.replace(
        "{file: {path: hot.jsonl, sendSingle: true}}",
        "{rest: {url: 'http://127.0.0.1:1/x', bufferLength: 1}}",
    )
    with (
        daemon(tmp_path, broker.url, {"hot.yaml": dead}, PENSTOCK__SHUTDOWN_TIMEOUT_MS="1500") as gateway,
        publisher(broker.port) as plant,
    ):
        gateway.wait_ready()
        for number in range(5):
            plant.send("plant/a", {"device": f"p{number}", "temp": 61.5})
        wait_for(lambda: gateway.status()["rules"]["hot"]["actions"][0]["queued"] == 5, what="five results")
        wait_for(lambda: gateway.status()["rules"]["hot"]["actions"][0]["retried"], what="a failed attempt")
        assert gateway.stop() == 0
        assert "event=sinks.unfinished results=5 " in gateway.log()
        gateway.start()
        gateway.wait_ready()
        assert gateway.status()["rules"]["hot"]["actions"][0]["queued"] == 5
