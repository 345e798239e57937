"""CONF_KEY and connectionSelector name what the gateway's configuration has; else an error says where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from edge.cli import main
from edge.config import Config
from edge.deploy.manage.files import ManagedFiles, Refusal
from edge.deploy.reading.rule_files import RuleFiles
from edge.intake.sources.registry import Configured, configured_of
from rules.secrets import Secrets

CONFIG = Config.model_validate({
    "gateway": {"id": "gw"},
    "mqtt": {"server": "mqtt://broker:1883", "username": "u", "password": "own", "clientId": "me"},
    "sources": {
        "httppull": {"plant": {"url": "http://h"}},
        "mqtt": {
            "near": {"connectionSelector": "mqtt"}, "plain": {}, "weak": {"qos": 0}, "typo": {"sever": "x"},
            "cells": {"connectionSelector": "mqtt.far", "clientid": "c1", "keepalive": 30},
            "exact": {"qos": 2}, "lost": {"connectionSelector": "farr"},
            "half": {"certificationPath": "/a.pem"},
        },
        "sql": {"outside": {"url": "sqlite:////etc/d.db"}},
    },
    "httpPush": {"bind": "127.0.0.1:0"},
    "connections": {
        "far": {"server": "tcp://other:1883", "username": "v", "password": "theirs", "clientid": "action",
                "retained": True},
        "same": {"server": "tcp://broker:1883"}, "db": {"url": "sqlite:///a.db"}, "bad": {"url": "x"},
    },
})  # fmt: skip
CONFIGURED = configured_of(CONFIG)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ('DATASOURCE="t", CONF_KEY="near"', None),
        ('DATASOURCE="t", CONF_KEY="plain"', None),
        ('DATASOURCE="t", CONF_KEY="same"', None),
        ('DATASOURCE="t", CONF_KEY="nearr"', "no connection of the gateway's configuration"),
        ('DATASOURCE="t", CONF_KEY="far"', None),
        ('DATASOURCE="t", CONF_KEY="weak"', None),
        ('DATASOURCE="t", CONF_KEY="cells"', None),
        ('DATASOURCE="t", CONF_KEY="db"', "has no 'server'"),
        ('DATASOURCE="t", CONF_KEY="typo"', "unknown setting 'sever'; it may have caFile, "),
        ('DATASOURCE="t", CONF_KEY="exact"', "qos: QoS 2 is not used; with 1"),
        ('DATASOURCE="t", CONF_KEY="lost"', "names connection 'farr', which the gateway does not configure"),
        ('DATASOURCE="t", CONF_KEY="half"', "needs both the certificate file and the key file"),
        ('DATASOURCE="/x", TYPE="httppull", CONF_KEY="plant"', None),
        ('TYPE="httppull", CONF_KEY="plant"', None),
        ('DATASOURCE="/x", TYPE="httppull", CONF_KEY="plan"', "no section of the gateway's sources.httppull"),
        ('DATASOURCE="/x?t={{.PullTime}}", TYPE="httppull", CONF_KEY="plant"', None),
    ],
)
def test_names_of_the_configuration(tmp_path: Path, options: str, message: str | None) -> None:
    rule = "rules: {r: {sql: SELECT * FROM s, actions: [log: {}]}}"
    text = f"streams:\n  - CREATE STREAM s () WITH ({options})\n{rule}\n"
    found = problems(tmp_path, text, "CONF_KEY=")
    assert found is None if message is None else message in (found or "")


def test_connections_of_their_own() -> None:
    """One with settings of its own at the gateway's broker, two at another,
    which learns no password of ours."""
    found = CONFIGURED.brokers
    assert found.names == {"far", "cells", "weak"} and found.same == {"mqtt", "near", "plain", "same"}
    far, cells, weak = (found.others[name].options for name in ("far", "cells", "weak"))
    assert (far.server, far.client_id, far.username) == ("tcp://other:1883", "me-far", "v")
    assert (cells.client_id, cells.keepalive_s, cells.username) == ("c1", 30, "v")
    assert (weak.server, weak.client_id, weak.username) == ("mqtt://broker:1883", "me-weak", "u")
    assert [found.others[name].qos for name in ("far", "weak")] == [1, 0]
    open_one = Config.model_validate({"mqtt": {"server": "a", "username": "u", "password": "p"},
                                      "connections": {"b": {"server": "b"}}})  # fmt: skip
    assert configured_of(open_one).brokers.others["b"].options.username is None


def test_streams_without_conf_key_take_the_default_section() -> None:
    names = configured_of(
        Config.model_validate({"sources": {"mqtt": {"default": {"server": "tcp://h:1"}}}})
    ).brokers
    assert names.of_stream({}) == names.of_stream({"CONF_KEY": "default"}) == "default"
    assert CONFIGURED.brokers.of_stream({}) == CONFIGURED.brokers.of_stream({"CONF_KEY": "near"}) == ""


@pytest.mark.parametrize(
    ("options", "section", "message"),
    [
        ("", {"url": "http://h"}, None),
        (', DATASOURCE="/x"', {"url": "http://h"}, None),
        (', EXTRA=\'{"url": "http://h"}\'', {}, None),
        (', DATASOURCE="http://h/x"', {}, None),
        ("", {}, "'' is no address: write http://host/path, or set url in sources.httppull"),
        (', DATASOURCE="/x"', {}, "'/x' is no address"),
        (', DATASOURCE="/x?t={{.PullTime"', {"url": "http://h"}, "is no template"),
    ],
)
def test_an_address_that_is_asked_may_be_that_of_the_default_section(
    tmp_path: Path, options: str, section: dict[str, str], message: str | None
) -> None:
    configured = configured_of(Config.model_validate({"sources": {"httppull": {"default": section}}}))
    first = 'CREATE STREAM t () WITH (DATASOURCE="t");\n'
    text = f'{first}CREATE STREAM s () WITH (TYPE="httppull"{options});'
    (tmp_path / "s.sql").write_text(text, "utf-8")
    rule = "rules: {r: {sql: SELECT * FROM t, actions: [log: {}]}}\n"
    found = [error for error in errors(tmp_path, rule, configured) if "E101" in error]
    assert found == [] if message is None else len(found) == 1 and message in found[0], found
    assert message is None or found[0].startswith(":2:" if "DATASOURCE" in options else ":2:1:")


@pytest.mark.parametrize(("connection", "is_known"), [("db", True), ("sql.db", True), ("dbb", False)])
def test_connections_of_lookup_tables(tmp_path: Path, connection: str, is_known: bool) -> None:
    text = (
        "streams:\n  s: CREATE STREAM s (a STRING) WITH (DATASOURCE=\"t\")\n"
        "  d: {kind: lookup, type: sql, datasource: d, extra: {connectionSelector: " + connection + "}}\n"
        "rules: {r: {sql: SELECT a FROM s LEFT JOIN d ON s.a = d.id, actions: [log: {}]}}\n"
    )  # fmt: skip
    found = errors(tmp_path, text)
    assert (found == []) == is_known, found
    assert is_known or f"connection '{connection}'" in found[0]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("type: sql, datasource: d, extra: {url: 'sqlite:///d.db'}", None),
        ("type: sql, datasource: d, confKey: outside", "a SQLite file lies below the data folder"),
        ("type: sql, datasource: d", "has no url of the database"),
        ("type: http, datasource: 'x/{id}'", "is no address"),
        ("type: redis, datasource: '0', extra: {addr: h}", "addr is host:port"),
    ],
)
def test_a_store_that_cannot_begin_is_told_before_the_start(
    tmp_path: Path, table: str, message: str | None
) -> None:
    text = f"tables:\n  d: {{kind: lookup, {table}}}\n"
    found = errors(tmp_path, text)
    assert found == [] if message is None else len(found) == 1 and message in found[0], found


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ("mqtt: {topic: t, connectionSelector: far}", None),
        ("mqtt: {topic: t, ConnectionSelector: mqtt.far}", None),
        (
            "mqtt: {topic: t, connectionSelector: fra}",
            "connection 'fra' is not in the gateway's configuration",
        ),
        ("sql: {table: t, resourceId: db}", None),
        ("sql: {table: t, connectionSelector: bad}", "connection 'bad' does not fit: url: a url looks like"),
        ("sql: {table: t, connectionSelector: far}", "connection 'far' has no 'url'; write it there or in"),
    ],
)
def test_connections_of_actions(tmp_path: Path, action: str, message: str | None) -> None:
    text = (
        "streams: {s: {datasource: t}}\nrules:\n  r:\n    sql: SELECT a FROM s\n    actions: [log: {}]\n"
        f"    error:\n      - {action}\n"
    )
    found = errors(tmp_path, text)
    assert found == [] if message is None else len(found) == 1 and message in found[0], found
    place = action.find("connectionSelector: ")
    assert message is None or found[0].startswith(f":7:{9 + place + len('connectionSelector: ')}: E104"), (
        found
    )


def test_an_mqtt_action_needs_a_broker(tmp_path: Path) -> None:
    text = "streams: {s: {datasource: t}}\nrules: {r: {sql: SELECT * FROM s, actions: [mqtt: {topic: t}]}}\n"
    assert errors(tmp_path, text) == []
    wanted = RuleFiles(tmp_path, "UTC", Secrets(), configured=configured_of(Config())).read()
    (problem,) = wanted.problems
    assert (problem.line, problem.column, problem.code, problem.is_error) == (2, 51, "E104", False)
    assert problem.message == (
        "connection 'mqtt' has no 'server'; set mqtt.server of the gateway, or write 'server' in the action"
    )
    assert list(wanted.rules) == ["r"], "the action waits for its broker"


@pytest.mark.parametrize("key", ["rootCaPath", "certificationPath"])
def test_certificates_that_are_not_there_are_told_and_keep_nothing_from_running(
    tmp_path: Path, key: str
) -> None:
    missing = tmp_path / "none.pem"
    text = (
        f'streams: {{s: {{type: httppull, datasource: "https://h/x", extra: {{{key}: {missing}}}}}}}\n'
        f"rules: {{r: {{sql: SELECT * FROM s, actions: [rest: {{url: 'https://h', {key}: {missing}}}]}}}}\n"
    )
    wanted = RuleFiles(write(tmp_path, text), "UTC", Secrets(), configured=CONFIGURED).read()
    why = f"TLS files cannot be used: '{missing}' cannot be read: no such file or directory"
    assert [
        (problem.line, problem.code, problem.message, problem.is_error) for problem in wanted.problems
    ] == [
        (1, "E105", f"{key} of 's': {why}", False),
        (2, "E105", why, False),
    ]
    assert list(wanted.rules) == ["r"]


def test_pushed_messages_need_a_server(tmp_path: Path) -> None:
    text = "streams: {s: {type: httppush, datasource: /x}}\n"
    assert errors(tmp_path, text, configured_of(Config())) == [
        ":1:21: E101 the gateway takes nothing by HTTP, which 's' needs"
    ]
    assert errors(tmp_path, text) == []


def test_check_looks_names_up_in_a_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules, configuration = tmp_path / "r.yaml", tmp_path / "gateway.yaml"
    rules.write_text("id: r\nsql: SELECT * FROM s\nactions: [mqtt: {topic: t, connectionSelector: far}]\n")
    (tmp_path / "s.sql").write_text('CREATE STREAM s () WITH (DATASOURCE="t", CONF_KEY="near");')
    configuration.write_text("connections: {near: {}, fat: {server: 'tcp://h'}}\noutgoing: {allow: [h]}\n")
    assert main(["check", str(rules)]) == 0
    assert main(["check", str(rules), "--config", str(configuration)]) == 1
    assert f"{rules}:3:48: E104 connection 'far'" in capsys.readouterr().out


def test_what_is_posted_over_http_is_refused_for_the_same_reasons(tmp_path: Path) -> None:
    rules = RuleFiles(
        write(tmp_path, "streams: {s: {datasource: t}}\n"), "UTC", Secrets(), configured=CONFIGURED
    )
    managed = ManagedFiles(rules)
    action = '{"mqtt": {"topic": "t", "connectionSelector": "%s"}}'
    rule = '{"id": "r", "sql": "SELECT * FROM s", "actions": [' + action + "]}"
    with pytest.raises(Refusal, match="E104 connection 'farr'"):
        managed.create("rule", "r", rule % "farr")
    with pytest.raises(Refusal, match=r"E101 .*no connection of the gateway's configuration"):
        managed.create("stream", "q", 'CREATE STREAM q () WITH (DATASOURCE="t", CONF_KEY="nearr")')
    managed.create("rule", "r", rule % "far")
    assert list(rules.read().rules) == ["r"]


def write(folder: Path, text: str) -> Path:
    """The folder with a rule file of this text."""
    (folder / "rules.yaml").write_text(text)
    return folder


def errors(folder: Path, text: str, configured: Configured = CONFIGURED) -> list[str]:
    files = RuleFiles(write(folder, text), "UTC", Secrets(), configured=configured)
    return [
        f":{problem.line}:{problem.column}: {problem.code} {problem.message}"
        for problem in files.read().problems
        if problem.is_error
    ]


def problems(folder: Path, text: str, place: str) -> str | None:
    """The error, if there is one; its line and column are those of `place`."""
    found = errors(folder, text)
    if not found:
        return None
    line = next(number for number, row in enumerate(text.splitlines(), 1) if place in row)
    column = text.splitlines()[line - 1].index(place) + 1
    assert len(found) == 1 and f":{line}:{column}: E101" in found[0], found
    return found[0]


WRITTEN_BY_TOOLS: dict[str, dict[str, Any]] = {
    "file": {
        "fileType": "json",
        "path": "", "interval": 0, "sendInterval": 0, "parallel": False, "actionAfterRead": 0,
        "moveTo": "/tmp/moved", "hasHeader": False, "columns": [], "ignoreStartLines": 0, "ignoreEndLines": 0,
        "decompression": "", "sourceType": "stream",
    },
    "httppull": {
        "url": "http://h", "method": "post", "interval": "10s", "body": "", "bodyType": "json",
        "certificationPath": "", "certficationRaw": "", "rootCaPath": "", "responseType": "code",
        "useInt64ForWholeNumber": True, "bufferLength": 1024,
    },
    "mqtt": {
        "connectionSelector": "",
        "server": "tcp://other:1883", "clientid": "", "username": "", "password": "",
        "protocolVersion": "3.1.1", "qos": 1, "certificationPath": "", "privateKeyPath": "", "rootCaPath": "",
        "insecureSkipVerify": False, "decompression": "", "kubeedgeVersion": "", "concurrency": 1,
    },
}  # fmt: skip
"""Sections with each setting as eKuiper's files and its manager write them where it is not set."""


@pytest.mark.parametrize("kind", ["file", "httppull", "mqtt"])
def test_settings_that_are_not_set_are_no_mistake(tmp_path: Path, kind: str) -> None:
    config = tmp_path / "gateway.yaml"
    config.write_text(json.dumps({"sources": {kind: {"plant": WRITTEN_BY_TOOLS[kind]}}}))
    stream = f"CREATE STREAM s () WITH (DATASOURCE='a', TYPE='{kind}', CONF_KEY='plant')"
    rule = {"id": "r", "sql": "SELECT * FROM s", "actions": [{"nop": {}}]}
    rules = tmp_path / "r.json"
    rules.write_text(json.dumps({"streams": [stream], "rules": [rule]}))
    assert main(["check", str(rules), "--config", str(config)]) == 0


def test_a_file_that_should_go_after_reading_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "gateway.yaml"
    config.write_text("sources: {file: {plant: {actionAfterRead: 1}}}")
    assert main(["check", str(tmp_path), "--config", str(config)]) == 2
    assert "sources.file.plant.actionAfterRead: is no setting of file" in capsys.readouterr().err
