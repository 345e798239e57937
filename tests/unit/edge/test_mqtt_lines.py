"""Which actions publish on the connection of a source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from edge.config.mqtt_options import MqttOptions
from edge.delivery.mqtt_lines import agree
from rules.secrets import Secret
from sinks.builtin.mqtt import MqttSettings

PLAIN: dict[str, Any] = {"server": "tcp://broker", "username": "plant", "password": "correct horse"}
PLAIN_OPTIONS = MqttOptions(
    "mqtt://broker:1883", "gateway", username="plant", password=Secret("correct horse"), keepalive_s=15
)
TLS: dict[str, Any] = {
    "server": "ssl://broker",
    "rootCaPath": "/ca.pem",
    "certificationPath": "/c.pem",
    "privateKeyPath": "/k.pem",
}
TLS_OPTIONS = MqttOptions(
    "mqtts://broker",
    "gateway",
    ca_file=Path("/ca.pem"),
    cert_file=Path("/c.pem"),
    key_file=Path("/k.pem"),
    version="3.1.1",
)


def settings(base: dict[str, Any], **changes: Any) -> MqttSettings:
    given = {**base, "topic": "t", **changes}
    return MqttSettings.model_validate({name: value for name, value in given.items() if value is not None})


@pytest.mark.parametrize(
    "changes", [{}, {"keepalive": "15s"}, {"qos": 0, "retained": True}, {"rootCaPath": "/not/used.pem"}]
)
def test_the_same_broker_and_user_share(changes: dict[str, Any]) -> None:
    assert agree(settings(PLAIN, **changes), PLAIN_OPTIONS)


@pytest.mark.parametrize(
    "changes",
    [
        {"server": "tcp://other"},
        {"server": "tcp://broker:1884"},
        {"server": "ssl://broker:1883"},
        {"username": "other"},
        {"password": "battery"},
        {"username": None, "password": None},
        {"clientid": "me"},
        {"keepalive": "20s"},
        {"timeout": "5s"},
        {"retryInterval": "1s"},
        {"protocolVersion": "3.1.1"},
    ],
)
def test_other_settings_do_not(changes: dict[str, Any]) -> None:
    assert not agree(settings(PLAIN, **changes), PLAIN_OPTIONS), "that source finds out the version"


def test_nobody_is_a_user_as_well() -> None:
    nobody = MqttOptions("mqtt://broker", "gateway")
    assert agree(settings(PLAIN, username=None, password=None), nobody)
    assert not agree(settings(PLAIN), nobody)


@pytest.mark.parametrize("changes", [{}, {"protocolVersion": "3.1.1"}])
def test_the_same_certificates_share(changes: dict[str, Any]) -> None:
    assert agree(settings(TLS, **changes), TLS_OPTIONS)


@pytest.mark.parametrize(
    "changes",
    [
        {"rootCaPath": None},
        {"certificationPath": "/other.pem"},
        {"privateKeyPath": None},
        {"rootCaPath": None, "rootCARaw": "x"},
        {"insecureSkipVerify": True},
        {"tlsMinVersion": "tls1.3"},
        {"protocolVersion": "5"},
    ],
)
def test_other_certificates_do_not(changes: dict[str, Any]) -> None:
    assert not agree(settings(TLS, **changes), TLS_OPTIONS)
