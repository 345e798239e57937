"""The configuration: file, environment, flags, and what is said about mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge.config import Config, ConfigError, load


def written(directory: Path, text: str) -> Path:
    path = directory / "penstock.yaml"
    path.write_text(text, "utf-8")
    return path


def test_defaults_stand_without_any_source() -> None:
    config = load(environment={})
    assert config.mqtt.server is None
    assert config.http.address == ("127.0.0.1", 9620)
    assert config.client_id == f"penstock-{config.gateway.id}"


def test_the_later_source_wins(tmp_path: Path) -> None:
    path = written(tmp_path, "mqtt:\n  server: mqtt://file:1883\n  keepaliveS: 30\n  username: file\n")
    environment = {
        "PENSTOCK__MQTT__SERVER": "mqtt://environment:1883",
        "PENSTOCK__MQTT__USERNAME": "environment",
    }
    config = load(path, environment, {"mqtt.server": "mqtts://flag:8883", "data.dir": None})
    assert config.mqtt.server == "mqtts://flag:8883"
    assert config.mqtt.username == "environment"
    assert config.mqtt.keepalive_s == 30


def test_durations_have_units_or_that_of_their_key(tmp_path: Path) -> None:
    path = written(tmp_path, "mqtt: {keepaliveS: 30, sessionExpiryS: 2d}\ncloud: {intervalMs: 1m30s}\n")
    config = load(path, {"PENSTOCK__JOURNAL__QUIETMS": "7", "PENSTOCK__CLOUD__HEARTBEATMS": "2h"})
    assert (config.mqtt.keepalive_s, config.mqtt.session_expiry_s) == (30, 172_800)
    assert (config.cloud.interval_ms, config.journal.quiet_ms) == (90_000, 7)
    assert config.cloud.heartbeat_ms == 7_200_000


def test_variables_find_their_key_in_any_spelling() -> None:
    names = (
        "PENSTOCK__LIMITS__INTAKEBYTESMAX",
        "PENSTOCK__LIMITS__INTAKE_BYTES_MAX",
        "penstock__limits__intakeBytesMax",
    )
    assert [load(environment={name: "20000"}).limits.intake_bytes_max for name in names] == [20_000] * 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mqtt:\n  sever: mqtt://x\n", "penstock.yaml:2:3: mqtt.sever: unknown key"),
        (
            "mqtt:\n  server: http://broker\n",
            "penstock.yaml:2:3: mqtt.server: server 'http://broker' has scheme 'http'",
        ),
        ("gateway:\n  zone: Mars/Base\n", "'Mars/Base' is not a time zone"),
        ("http:\n  bind: 0.0.0.0:80\n", "can be reached from other machines; set http.token as well"),
        ("mqtt:\n  keepaliveS: 1500ms\n", "penstock.yaml:2:3: mqtt.keepaliveS: must be whole seconds"),
        ("cloud:\n  intervalMs: 5 minutes\n", "cloud.intervalMs: must be a duration of d, h, m, s and ms"),
        ("http:\n  bind: here\n", "'here' is not an address; expected address:port or off"),
        (
            "http:\n  bind: 127.0.0.1:99999\n",
            "penstock.yaml:2:3: http.bind: '127.0.0.1:99999' has no valid port",
        ),
        ("http:\n  token: ''\n", "penstock.yaml:2:3: http.token: must be one word of ASCII characters"),
        ("data:\n  dir: ''\n", "penstock.yaml:2:3: data.dir: is empty; name a directory"),
        (
            "limits:\n  intakeBytesMax: 5\n",
            "limits.intakeBytesMax: Input should be greater than or equal to 10000",
        ),
        ("mqtt: {sever: x}\n", "1:8: mqtt.sever: unknown key; did you mean 'server'?"),
        ("outgoing: {zzz: x}\n", "1:12: outgoing.zzz: unknown key; expected one of allow"),
        ("mqtt: 5\n", "1:1: mqtt: expected keys below it"),
        ("- a list\n", "expected sections such as 'mqtt:', got a list"),
        ("mqtt: [\n", "R001"),
    ],
)
def test_mistakes_name_the_key_and_what_is_allowed(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(written(tmp_path, text), environment={})
    assert expected in str(caught.value)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize("source", ["file", "environment"])
def test_the_quality_of_service_that_is_not_used_is_told_why(tmp_path: Path, source: str) -> None:
    path = written(tmp_path, "mqtt: {qos: 2}\n") if source == "file" else None
    environment = {} if path else {"PENSTOCK__MQTT__QOS": "2"}
    with pytest.raises(ConfigError, match=r"mqtt\.qos: QoS 2 is not used; with 1"):
        load(path, environment)


def test_an_unknown_variable_is_an_error() -> None:
    with pytest.raises(
        ConfigError, match="PENSTOCK__MQTT__SEVER: unknown key 'SEVER'; expected one of CAFILE,"
    ):
        load(environment={"PENSTOCK__MQTT__SEVER": "x"})
    with pytest.raises(ConfigError, match="what is below connections stands in the file"):
        load(environment={"PENSTOCK__CONNECTIONS__X__SERVER": "x"})


def test_secrets_come_from_variables_and_files_and_are_not_shown(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("from-file\n")
    text = "mqtt: {username: me, password: '${file:password}'}\nhttp: {token: '${env:TOKEN}'}\n"
    path = written(tmp_path, f"secrets: {{dir: {tmp_path}}}\n{text}")
    config = load(path, {"TOKEN": "from-env"})
    assert config.mqtt.password is not None
    assert config.mqtt.password.reveal() == "from-file"
    assert "from-" not in repr(config)
    with pytest.raises(ConfigError, match=r"http.token: the environment variable 'TOKEN' is not set"):
        load(path, {})


def test_every_bound_says_what_it_does() -> None:
    """A bound without a word about its behaviour is a riddle; the docstrings below the
    fields are the manual."""
    import ast
    import inspect

    from edge.config import sections

    silent = []
    for node in ast.parse(inspect.getsource(sections)).body:
        if isinstance(node, ast.ClassDef) and node.name == "LimitsConfig":
            for field, after in zip(node.body[1:], [*node.body[2:], None], strict=True):
                if isinstance(field, ast.AnnAssign) and not isinstance(after, ast.Expr):
                    silent.append(ast.unparse(field.target))
    assert not silent
    assert Config.model_fields["limits"]
