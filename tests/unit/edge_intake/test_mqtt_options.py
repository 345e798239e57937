"""Settings of an MQTT connection: what is refused, and with which words."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from edge.clock import SystemClock
from edge.config.mqtt_options import BadOptions, MqttOptions
from edge.intake.router import BadTopicFilter
from edge.intake.sources.mqtt.attempts import Pause
from edge.intake.sources.mqtt.client import make_client
from edge.intake.sources.mqtt.source import MqttSource
from sinks.backoff import Backoff


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"server": "http://x"}, "supported are mqtt, tcp, mqtts, ssl, tls"),
        ({"server": "mqtt://"}, "names no host"),
        ({"server": "mqtt://x:99999"}, "no valid port"),
        ({"server": "mqtt://user:secret@x"}, "use username and password"),
        ({"client_id": ""}, "must not be empty"),
        ({"client_id": "a/b"}, "nor contain"),
        ({"cert_file": Path("c.pem")}, "both the certificate file and the key file"),
        ({"password": "x"}, "needs a user name"),
        ({"keepalive_s": 0}, "between 1 and 65535"),
        ({"receive_max": 70_000}, "between 1 and 65535"),
        ({"reconnect_ms_min": 50_000}, "between 1 and 30000"),
        ({"status_prefix": "a/#"}, "must not contain"),
    ],
)
def test_wrong_settings(settings: dict[str, Any], part: str) -> None:
    with pytest.raises(BadOptions, match=part) as caught:
        MqttOptions(**{"server": "mqtt://broker", "client_id": "g"} | settings)
    assert "secret" not in str(caught.value)


def test_a_missing_certificate_is_named() -> None:
    options = MqttOptions("mqtts://broker", "g", ca_file=Path("/nowhere/ca.pem"))
    with pytest.raises(OSError, match=r"'/nowhere/ca\.pem'"):
        make_client(options, "5")


def test_wrong_subscriptions_change_nothing() -> None:
    source = MqttSource(MqttOptions("mqtt://broker", "g"), SystemClock())
    source.set_subscriptions({"a": 1})
    with pytest.raises(BadOptions, match=r"qos 2 of 'b' would lose messages .* use qos 1"):
        source.set_subscriptions({"b": 2})
    with pytest.raises(BadOptions, match="MQTT has 0, 1 and 2"):
        source.set_subscriptions({"b": 3})
    with pytest.raises(BadTopicFilter):
        source.set_subscriptions({"b#": 1})
    assert source.stats["subscriptions"] == 1
    source.stop(0)


def test_back_off_grows_to_its_cap_and_never_above() -> None:
    pause = Pause(Backoff(500, 30_000), random.Random(1))
    for full_ms in (500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000):
        assert full_ms // 2 <= pause.after_loss(0) <= full_ms
    pause.failures = 10_000
    assert 15_000 <= pause.after_loss(0) <= 30_000
    assert 250 <= pause.after_loss(30_001) <= 500  # the last connection has lasted
