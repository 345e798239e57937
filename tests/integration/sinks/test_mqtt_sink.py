"""The mqtt sink against a real broker: confirmed, in order, through restarts, freezes and refusals."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rules.secrets import Secret
from tests.integration.sinks.support import Gateway, Listener
from tests.support.brokers import Mosquitto, make_certificates, password_lines
from tests.support.waiting import PATIENCE_MS, wait_for
from tests.unit.sinks.support import rows

MakeBroker = Callable[..., Mosquitto]
pytestmark = pytest.mark.broker


def numbers(listener: Listener) -> list[int]:
    """The `n` of every row that arrived."""
    return [row["n"] for payload in listener.payloads() for row in json.loads(payload)]


@pytest.mark.parametrize("version", ["3.1.1", "5"])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_publishes_in_order(gateway: Gateway, broker: Mosquitto, qos: int, version: str) -> None:
    listener = Listener(broker.port, "plant/#", qos)
    settings = {"server": broker.url, "topic": "plant/{{.dev}}", "qos": qos, "protocolVersion": version}
    delivery = gateway.action("mqtt", settings)
    for number in range(200):
        assert delivery.submit(rows({"dev": "a/b", "n": number}), number)
    assert gateway.await_receipts(200) == [(number, "delivered") for number in range(200)]
    wait_for(lambda: len(listener.messages) >= 200)
    assert numbers(listener) == list(range(200))
    assert {topic for topic, _, _ in listener.messages} == {"plant/a%2Fb"}
    assert delivery.close(gateway.within()) == 0
    listener.close()


def test_retained_messages_are_kept_by_the_broker(gateway: Gateway, broker: Mosquitto) -> None:
    gateway.action("mqtt", {"server": broker.url, "topic": "last", "retained": True}).submit(
        rows({"n": 1}), 1
    )
    gateway.await_receipts(1)
    listener = Listener(broker.port, "last")
    wait_for(lambda: listener.messages)
    assert listener.messages == [("last", b'[{"n":1}]', True)]
    listener.close()


def test_an_absent_broker_is_awaited_and_a_restart_loses_nothing(
    gateway: Gateway, make_broker: MakeBroker
) -> None:
    broker = make_broker()
    delivery = gateway.action("mqtt", {"server": broker.url, "topic": "t", "timeout": 2000})
    delivery.submit(rows({"n": 0}), 0)
    wait_for(lambda: delivery.stats().state == "retrying")
    assert "cannot be reached" in delivery.stats().last_error
    broker.start()
    gateway.await_receipts(1)
    broker.kill()
    for number in range(1, 6):
        delivery.submit(rows({"n": number}), number)
    wait_for(lambda: delivery.stats().retried > 1 and delivery.stats().state == "retrying")
    broker.start()
    listener = Listener(broker.port, "t")
    gateway.await_receipts(6)
    delivery.submit(rows({"n": 6}), 6)
    wait_for(lambda: 6 in numbers(listener))
    assert set(numbers(listener)) >= {6}
    assert [token for token, outcome in gateway.receipts] == list(range(len(gateway.receipts)))
    listener.close()
    assert delivery.close(gateway.within()) == 0


def test_a_frozen_broker_gives_no_receipts_until_it_answers(gateway: Gateway, broker: Mosquitto) -> None:
    listener = Listener(broker.port, "t")
    delivery = gateway.action("mqtt", {"server": broker.url, "topic": "t", "timeout": 300})
    delivery.submit(rows({"n": 0}), 0)
    gateway.await_receipts(1)
    broker.signal(signal.SIGSTOP)
    for number in range(1, 11):
        delivery.submit(rows({"n": number}), number)
    wait_for(lambda: delivery.stats().retried >= 2)
    assert len(gateway.receipts) == 1
    broker.signal(signal.SIGCONT)
    gateway.await_receipts(11)
    wait_for(lambda: 10 in numbers(listener))
    # At least once: a repeated run is possible, a gap or a step back inside the last run is not.
    assert numbers(listener)[-10:] == list(range(1, 11))
    listener.close()
    assert delivery.close(gateway.within()) == 0


def test_closing_while_the_broker_is_frozen_keeps_to_the_bound(gateway: Gateway, broker: Mosquitto) -> None:
    """The action itself would wait for the broker's answer much longer."""
    timeout_ms = 2 * PATIENCE_MS
    delivery = gateway.action("mqtt", {"server": broker.url, "topic": "t", "timeout": timeout_ms})
    delivery.submit(rows({"n": 0}), 0)
    gateway.await_receipts(1)
    broker.signal(signal.SIGSTOP)
    delivery.submit(rows({"n": 1}), 1)
    begun_ms = gateway.clock.monotonic_ms()
    assert delivery.close(gateway.within(200)) == 1
    assert gateway.clock.monotonic_ms() - begun_ms < timeout_ms
    assert len(gateway.receipts) == 1
    broker.signal(signal.SIGCONT)


def with_passwords(folder: Path, make_broker: MakeBroker) -> Mosquitto:
    """A broker that knows user `plant` with password `s3cret-value`, who may only write below `open/`."""
    lines = password_lines(folder, "plant", "s3cret-value")
    rights = folder / "rights"
    rights.write_text("user plant\ntopic readwrite open/#\n")
    return make_broker(anonymous=False, lines=(*lines, f"acl_file {rights}")).start()


@pytest.mark.parametrize("version", ["3.1.1", "5"])
def test_a_refused_password_degrades_the_sink_and_is_not_shown(
    gateway: Gateway, tmp_path: Path, make_broker: MakeBroker, version: str
) -> None:
    broker = with_passwords(tmp_path / "broker", make_broker)
    settings: dict[str, Any] = {"server": broker.url, "topic": "open/a", "username": "plant"}
    settings["protocolVersion"] = version
    wrong = gateway.action("mqtt", settings | {"password": Secret("s3cret-wrong")})
    wrong.submit(rows({"n": 1}), "never")
    stats = wait_for(lambda: (now := wrong.stats()).state == "degraded" and now)
    assert "broker refused the connection" in stats.last_error
    assert "s3cret" not in repr(stats)
    right = gateway.action("mqtt", settings | {"password": Secret("s3cret-value")})
    right.submit(rows({"n": 1}), "token")
    assert gateway.await_receipts(1) == [("token", "delivered")]


def test_a_topic_without_rights_is_a_dead_letter_in_mqtt_5(
    gateway: Gateway, tmp_path: Path, make_broker: MakeBroker
) -> None:
    broker = with_passwords(tmp_path / "broker", make_broker)
    settings = {"server": broker.url, "topic": "{{.t}}", "username": "plant", "password": "s3cret-value"}
    delivery = gateway.action("mqtt", settings | {"protocolVersion": "5", "topic": "open{{.t}}"})
    for number, suffix in enumerate(("x", "y")):
        delivery.submit(rows({"t": suffix, "n": number}), number)
    assert gateway.await_receipts(2) == [(0, "rejected"), (1, "rejected")]
    letters = [json.loads(line) for line in gateway.dead_letters().splitlines()]
    assert [letter["target"] for letter in letters] == ["openx", "openy"]
    assert all("Not authorized" in letter["reason"] for letter in letters)


def test_tls_with_the_right_and_the_wrong_authority(
    gateway: Gateway, tmp_path: Path, make_broker: MakeBroker
) -> None:
    made = make_certificates(tmp_path / "certificates")
    broker = make_broker(lines=made.lines(client_required=True)).start()
    server = f"ssl://localhost:{broker.port}"
    distrustful = gateway.action("mqtt", {"server": server, "topic": "t"})
    distrustful.submit(rows({"n": 1}), "never")
    wait_for(lambda: distrustful.stats().state == "degraded")
    assert "certificate" in distrustful.stats().last_error
    client = {"certificationPath": str(made.client), "privateKeyPath": str(made.client_key)}
    for case in ({"rootCaPath": str(made.authority)}, {"insecureSkipVerify": True}):
        gateway.action("mqtt", {"server": server, "topic": "t", **client, **case}).submit(
            rows({"n": 1}), str(case)
        )
    gateway.await_receipts(2)
