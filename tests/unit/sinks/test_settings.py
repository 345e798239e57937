"""Settings: nothing without effect is accepted, and a secret is never shown."""

from __future__ import annotations

import json
import ssl
from typing import Any

import pytest
from pydantic import ValidationError

from rules.compile import compile_rules
from rules.loader import load_text, unite
from rules.secrets import Secret
from sinks import Environment, Fatal, SinkContext, sink_kind, sink_kinds
from sinks.builtin.mqtt import MqttSettings
from sinks.builtin.rest import RestSettings
from sinks.connections import connected

REST = {"url": "http://h/a"}
MQTT = {"server": "tcp://h", "topic": "t"}
MEMORY = {"topic": "t"}
FILE = {"path": "a.jsonl"}
INFLUX = {"addr": "http://h", "measurement": "m", "database": "d"}
INFLUX2 = {"addr": "http://h", "measurement": "m", "org": "o", "bucket": "b"}
LINES = {"useLineProtocol": True, "dataTemplate": "m v={{.v}}"}
KAFKA = {"brokers": "h:1", "topic": "t"}
NOTHING: Any = None


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("nop", {"sendSingel": True}, "sendSingel"),
        ("nop", {"enableCache": True}, "has no effect on this sink"),
        ("rest", {"url": "http://h/", "maxDiskCache": 5}, "needs 'enableCache: true'"),
        ("rest", {"url": "http://h/", "resendDestination": "x"}, "use a second action"),
        ("nop", {"encryption": "aes"}, "use TLS"),
        ("kafka", KAFKA | {"headers": "[1]"}, "the text of a JSON object"),
        ("sql", {"dburl": "a://b", "url": "a://b", "table": "t"}, "the same property"),
        ("nop", {"batchSize": -1}, "batchSize"),
        ("nop", {"delimiter": ";"}, "needs 'format: delimited'"),
        ("nop", {"format": "delimited", "dataTemplate": "x"}, "remove 'format: delimited'"),
        ("nop", {"fields": ["a", "b"], "excludeFields": ["b"]}, "columns that 'fields' has too: b"),
        ("nop", {"retryInterval": "5s", "retryMaxInterval": "1s"}, "(1s) is below 'retryInterval' (5s)"),
        ("nop", {"lingerInterval": "5 parsecs"}, "duration"),
        ("nop", {"dataTemplate": "{{.a"}, "template:1:1: K101"),
        ("log", {"compression": "gzip"}, "'compression' has no effect on this sink"),
        ("memory", MEMORY | {"format": "delimited"}, "'format' has no effect"),
        ("memory", {"topic": "a/#"}, "'#'"),
        ("file", {"path": "/etc/passwd"}, "relative path"),
        ("file", {"path": "../a"}, "leaves the data folder"),
        ("file", {"path": "a/../../b"}, "leaves the data folder"),
        ("file", {"path": "a/"}, "names no file"),
        ("file", FILE | {"compression": "zlib"}, "'compression' must be gzip or zstd"),
        ("rest", {}, "url"),
        ("rest", {"url": "ftp://h/a"}, "http://host/path"),
        ("rest", {"url": "http://u:p@h/a"}, "must not hold a password"),
        ("rest", REST | {"method": "fetch"}, "unknown method 'fetch'"),
        ("rest", REST | {"responseType": "body"}, "the status code of an answer decides"),
        ("rest", REST | {"formData": {"a": "b"}}, "use 'bodyType: form'"),
        ("file", FILE | {"rollingHook": "upload"}, "another program may take full files away"),
        ("mqtt", MQTT | {"properties": {"a": "b"}}, "put the values into the message"),
        ("rest", REST | {"bodyType": "form"}, "add 'sendSingle: true'"),
        ("rest", REST | {"headers": {"A": "x\r\nB: y"}}, "not a header line"),
        ("mqtt", {"server": "http://h:1883", "topic": "t"}, "tcp://host:1883"),
        ("mqtt", MQTT | {"clientId": "a", "clientid": "b"}, "the same property"),
        ("mqtt", MQTT | {"topic": "{{.a}}/x"}, "begin with literal text"),
        ("mqtt", MQTT | {"certificationPath": "a", "certificationRaw": "b"}, "given as a path and raw"),
        ("file", {"path": "a", "fileType": "xml"}, "lines or csv"),
        ("file", {"path": "a", "compression": "flate"}, "'compression' must be gzip"),
        ("rest", REST | {"headers": {"A": "{{.x"}}, "without '}}'"),
        ("rest", REST | {"oAuth": {"access": {"url": "ftp://h"}}}, "begins with http"),
        ("rest", REST | {"oAuth": {"access": {"url": "http://h", "expire": "soon"}}}, "number of seconds"),
        ("mqtt", MQTT | {"qos": 3}, "qos"),
        ("redis", {"addr": "h:1"}, "'key', 'field' or 'keyType: multiple' must say where a message"),
        ("redis", {"addr": "h:1", "key": "k", "field": "f"}, "only one of 'key', 'field' and 'keyType"),
        ("mqtt", MQTT | {"protocolVersion": "6"}, "protocolVersion"),
        ("mqtt", MQTT | {"password": "x"}, "needs 'username'"),
        ("influx2", INFLUX2 | LINES, "remove 'dataTemplate'"),
    ],
)
def test_wrong_settings_say_what_to_do(name: str, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        sink_kind(name).settings.model_validate(settings)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("written", "read"), [(5, "5"), ("5.0", "5"), (3.1, "3.1"), ("3.1.1", "3.1.1"), (4, "3.1.1")]
)
def test_protocol_versions_as_yaml_reads_them(written: Any, read: str) -> None:
    checked = sink_kind("mqtt").settings.model_validate(MQTT | {"protocolVersion": written})
    assert checked.model_dump()["protocol_version"] == read


@pytest.mark.parametrize(
    "chosen", [{"useLineProtocol": True}, {"useLineProtocol": False, "dataTemplate": '{"v": {{.v}}}'}]
)
def test_points_are_lines_with_or_without_the_word(chosen: dict[str, Any]) -> None:
    checked = sink_kind("influx2").settings.model_validate(INFLUX2 | chosen)
    assert checked.model_dump()["use_line_protocol"] is chosen["useLineProtocol"]


def test_durations_may_have_units() -> None:
    checked = sink_kind("nop").settings.model_validate({"lingerInterval": "1m30s", "retryInterval": 250})
    assert (checked.linger_interval, checked.retry_interval) == (90_000, 250)


def test_batching_begins_with_either_property() -> None:
    model = sink_kind("nop").settings
    assert not model.model_validate({}).batches
    assert model.model_validate({"batchSize": 2}).batches
    assert model.model_validate({"lingerInterval": 50}).batches


def test_secrets_are_accepted_and_not_shown() -> None:
    hidden = "s3cret-value"
    mqtt = sink_kind("mqtt").settings.model_validate(
        {"server": "tcp://h", "topic": Secret("t/" + hidden), "username": "u", "password": Secret(hidden)}
    )
    assert hidden not in repr(mqtt) + str(mqtt) + repr(mqtt.model_dump())
    assert set(mqtt.secrets()) == {hidden, "t/" + hidden}
    rest = sink_kind("rest").settings.model_validate(REST | {"headers": {"Authorization": Secret(hidden)}})
    assert list(rest.secrets()) == [hidden]


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("mqtt", {"server": Secret("ftp://s3cret-value"), "topic": "t"}),
        ("rest", REST | {"headers": {"A": Secret("s3cret-value {{")}}),
        ("mqtt", {"server": "tcp://h", "topic": Secret("s3cret-value/#")}),
        ("file", {"path": Secret("/s3cret-value")}),
        ("rest", {"url": Secret("s3cret-value")}),
        ("rest", REST | {"headers": {"A": Secret("s3cret-value\n")}}),
        ("nop", {"dataTemplate": Secret("s3cret-value {{")}),
        ("nop", {"batchSize": Secret("s3cret-value")}),
    ],
)
def test_errors_about_secrets_do_not_show_them(name: str, settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as caught:
        sink_kind(name).settings.model_validate(settings)
    assert "s3cret" not in str(caught.value)


def test_unknown_sinks_get_a_suggestion() -> None:
    with pytest.raises(ValueError, match="did you mean 'mqtt'"):
        sink_kind("mqt")


def test_a_sink_of_ekuiper_that_is_not_here_names_the_substitute() -> None:
    text = "id: a\nsql: SELECT a FROM s\nactions: [{tdengine: {host: h}}]\n"
    (problem,) = [item for item in load_text(text).problems if item.code == "R105"]
    assert problem.hint is not None and problem.hint.startswith("write 'rest' to http://HOST:6041/rest/sql")


@pytest.mark.parametrize("kind", sink_kinds(), ids=lambda kind: kind.name)
def test_every_setting_is_documented(kind: Any) -> None:
    schema = kind.settings.model_json_schema()
    assert schema["description"].partition("\n")[0].endswith(".")
    assert all(field.get("description") for field in schema["properties"].values())
    assert schema["additionalProperties"] is False


def test_names_of_properties_are_taken_in_any_case() -> None:
    written = {"Server": "broker:1883", "TOPIC": "t", "clientId": "me", "keepAlive": 30, "sendsingle": True}
    settings = sink_kind("mqtt").settings.model_validate(written).model_dump()
    assert (settings["clientid"], settings["keepalive"], settings["send_single"]) == ("me", 30, True)


ALL_AT_ONCE = """\
id: r
sql: SELECT * FROM m
actions:
  - file: {path: a, encryption: aes, fileType: xml, resendDestination: b, sendSingle: 5, rollingIntervall: 1}
  - nop: {enableCache: true, LOG: 3, encryption: aes, compresion: gzip}
  - mqtt: {topic: "a/#", password: x, delimiter: ;, hasHeader: true, maxDiskCache: 3, retryMaxInterval: 5}
"""


def test_all_faults_of_an_action_are_reported_at_once() -> None:
    problems = load_text(ALL_AT_ONCE, "r.yaml").problems
    assert [problem.render().split(" not ")[0].splitlines()[0] for problem in problems] == [
        "r.yaml:4:21: R104 'encryption' is",
        "r.yaml:4:38: R104 'fileType' must be lines or csv,",
        "r.yaml:4:53: R104 'resendDestination' is",
        "r.yaml:4:87: R103 'sendSingle' must be true or false,",
        "r.yaml:4:90: R101 unknown key 'rollingIntervall' in 'file'",
        "r.yaml:5:11: R104 'enableCache' has no effect on this sink; remove it",
        "r.yaml:5:35: R103 'LOG' must be true or false,",
        "r.yaml:5:38: R104 'encryption' is",
        "r.yaml:5:55: R101 unknown key 'compresion' in 'nop'",
        "r.yaml:6:12: R104 'topic': a topic to publish to must",
        "r.yaml:6:26: R104 'password' needs 'username'",
        "r.yaml:6:39: R104 'delimiter' needs 'format: delimited'",
        "r.yaml:6:53: R104 'hasHeader' needs 'format: delimited'",
        "r.yaml:6:70: R104 'maxDiskCache' needs 'enableCache: true'",
        "r.yaml:6:87: R104 'retryMaxInterval' (5ms) is below 'retryInterval' (1s)",
    ]


@pytest.mark.parametrize(
    ("action", "hint"),
    [
        (
            "rest: {url: 'http://h', xyzzy: 1}",
            "keys of its own are bodyType, debugResp, headers, method, oAuth, timeout, url; "
            "docs/reference/sinks.md has the others",
        ),
        ("nop: {xyzzy: 1}", "keys of its own are log; docs/reference/sinks.md has the others"),
        ("nop: {logg: true}", "did you mean 'log'?"),
    ],
)
def test_hint_for_an_unknown_key_has_those_of_the_sink_itself(action: str, hint: str) -> None:
    (problem,) = load_text(f"id: r\nsql: SELECT * FROM m\nactions: [{action}]\n", "r.yaml").problems
    assert (problem.code, problem.hint) == ("R101", hint)


@pytest.mark.parametrize(
    ("name", "written", "read"),
    [
        ("sql", {"dburl": "sqlite:///a.db", "table": "t"}, {"url": "sqlite:///a.db"}),
        ("mqtt", {"resourceId": "plant", "topic": "t"}, {"connection_selector": "plant"}),
        ("redis", {"address": "h:1", "key": "k", "expire": "60"}, {"addr": "h:1", "expiration": 60}),
        ("redis", {"addr": "h:1", "field": "id"}, {"send_single": True}),
        ("redis", {"addr": "h:1", "key": "k", "dataType": "list", "expiration": -1}, {"expiration": 0}),
        ("kafka", KAFKA | {"headers": '{"a": "{{.b}}"}'}, {"headers": {"a": "{{.b}}"}}),
        ("influx", INFLUX | {"tags": '{"a": "b"}'}, {"tags": {"a": "b"}}),
        ("influx", INFLUX | {"tagkey": "a", "tagValue": "b"}, {"tags": {"a": "b"}}),
        ("mqtt", MQTT | {"delimiter": "", "schemaId": ""}, {"delimiter": ",", "schema_id": None}),
        ("rest", REST | {"headers": '{"A": "b"}', "tlsMinVersion": "tls1.3"}, {"headers": {"A": "b"}}),
    ],
)
def test_other_spellings_of_ekuiper(name: str, written: dict[str, Any], read: dict[str, Any]) -> None:
    settings = sink_kind(name).settings.model_validate(written).model_dump()
    assert {key: settings[key] for key in read} == read


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        (
            "mqtt",
            MQTT | {"runAsync": True, "Concurrency": 4, "resendPriority": 1, "renegotiationSupport": "never"},
        ),
        ("kafka", KAFKA | {"kafkaBatchSize": 50, "maxAttempts": 3, "tlsMinVersion": "tls1.2"}),
        ("file", FILE | {"interval": 1000, "checkInterval": 60_000, "rollingNamePattern": "prefix"}),
        ("memory", MEMORY | {"keyField": "id"}),
    ],
)
def test_what_changes_nothing_is_taken_and_told(name: str, settings: dict[str, Any]) -> None:
    sink_kind(name).settings.model_validate(settings)
    text = json.dumps({"id": "r", "sql": "SELECT * FROM m", "actions": [{name: settings}]})
    told = [problem for problem in load_text(text, "r.json").problems if problem.code == "R201"]
    assert len(told) == len(settings) - len({"mqtt": MQTT, "file": FILE, "memory": MEMORY}.get(name, MQTT))
    assert all("has no effect" in problem.message for problem in told)


WRITTEN_BY_TOOLS: dict[str, Any] = {
    "concurrency": 1,
    "runAsync": False,
    "omitIfEmpty": False,
    "dataTemplate": "",
    "format": "json",
    "schemaId": "",
    "delimiter": "",
    "dataField": "",
    "fields": [],
    "excludeFields": [],
    "enableCache": False,
    "memoryCacheThreshold": 1024,
    "maxDiskCache": 1_024_000,
    "bufferPageSize": 256,
    "resendInterval": "0s",
    "cleanCacheAtStop": False,
    "resendAlterQueue": False,
    "resendPriority": 0,
    "resendIndicatorField": "",
    "resendDestination": "",
    "batchSize": 0,
    "lingerInterval": 0,
    "compression": "",
    "encryption": "",
    "hasHeader": False,
    "rowkindField": "",
}
"""The common properties with the values by which eKuiper's tools say that they are not set."""


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("nop", {}),
        ("log", {}),
        ("memory", MEMORY | {"keyField": ""}),
        ("mqtt", MQTT | {"connectionSelector": "", "clientId": "", "properties": {}}),
        ("rest", REST | {"responseType": "code", "formData": {}}),
        ("file", FILE | {"rollingInterval": "", "checkInterval": "", "rollingHook": ""}),
        ("kafka", KAFKA),
        ("influx", INFLUX),
        ("redis", {"addr": "h:1", "key": "k", "field": ""}),
        ("sql", {"url": "sqlite:///a.db", "table": "t"}),
    ],
)
def test_what_says_that_it_is_not_set_is_no_mistake_and_needs_no_note(
    name: str, settings: dict[str, Any]
) -> None:
    model = sink_kind(name).settings
    written = WRITTEN_BY_TOOLS | settings
    assert model.model_validate(written).model_dump() == model.model_validate(settings).model_dump()
    text = json.dumps({"id": "r", "sql": "SELECT * FROM m", "actions": [{name: written}]})
    assert [problem for problem in load_text(text, "r.json").problems if problem.code != "R203"] == []


def test_false_is_not_zero() -> None:
    with pytest.raises(ValidationError, match="batchSize"):
        sink_kind("nop").settings.model_validate({"batchSize": False})


def test_tls_has_a_version() -> None:
    settings = sink_kind("rest").settings.model_validate(REST | {"tlsMinVersion": "tls1.3"})
    assert isinstance(settings, RestSettings)
    assert settings.tls_context().minimum_version is ssl.TLSVersion.TLSv1_3


def test_columns_of_a_row_inside_a_column_are_not_doubted() -> None:
    text = """
    id: r
    sql: SELECT data FROM m
    actions: [sql: {url: "sqlite:///a.db", table: t, tableDataField: data, fields: [n]}]
    """
    loaded = unite([load_text("streams: {m: {datasource: m}}", "s.yaml"), load_text(text, "r.yaml")])
    assert compile_rules(loaded).problems == []


def test_a_topic_may_begin_with_a_field_behind_a_prefix() -> None:
    settings = sink_kind("mqtt").settings.model_validate(
        MQTT | {"topic": "{{.a}}/x", "topicPrefix": "site1/"}
    )
    assert settings.target_text == "site1/{{.a}}/x"


def test_kinds_of_files() -> None:
    settings = sink_kind("file").settings.model_validate(
        {"path": "a.csv", "fileType": "csv", "hasHeader": True}
    )
    assert settings.format == "delimited"


def test_a_connection_stands_in_for_what_is_not_written() -> None:
    connections: dict[str, dict[str, Any]] = {
        "plant": {"server": "tcp://b", "topicPrefix": "p/", "username": "u", "nothing": 1}
    }
    context = SinkContext(
        "r", "mqtt", Environment(NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, connections=connections)
    )

    def through(name: str) -> Any:
        given = {"topic": "t", "username": "me", "connectionSelector": name}
        return connected(MqttSettings.model_validate(given), context)

    for name in ("plant", "mqtt.plant"):
        found = through(name)
        assert (found.server, found.username, found.target_text) == ("tcp://b", "me", "p/t")
    with pytest.raises(Fatal, match="did you mean 'plant'"):
        through("plnt")
    connections["mqtt"] = {}
    with pytest.raises(Fatal, match="connection 'mqtt' has no 'server'; set"):
        connected(MqttSettings.model_validate({"topic": "t"}), context)
    connections["plant"]["qos"] = 7
    with pytest.raises(Fatal, match="qos: Input"):
        through("plant")


@pytest.mark.parametrize(("written", "shown"), [("1", "1"), ("[a]", "a list"), ("true", "true")])
def test_a_setting_that_is_no_text_is_shown_as_written(written: str, shown: str) -> None:
    rule = f"id: r\nsql: SELECT a FROM m\nactions: [mqtt: {{topic: {written}}}]\n"
    (problem,) = load_text(rule, "r.yaml").problems
    assert problem.message == f"'topic' must be text, not {shown}"
