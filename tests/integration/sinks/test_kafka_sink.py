"""The `kafka` sink against a broker: the one PENSTOCK_KAFKA names, or the one inside the client library."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from sinks import sink_kind
from tests.integration.sinks.support import Gateway
from tests.support.kafka import Kafka
from tests.support.ports import free_port
from tests.support.waiting import wait_for
from tests.unit.sinks.support import rows


@pytest.fixture(scope="module")
def kafka() -> Kafka:
    return Kafka()


def test_records_arrive_in_order_with_key_and_headers(gateway: Gateway, kafka: Kafka) -> None:
    topic = kafka.topic()
    settings = {
        "brokers": kafka.brokers,
        "topic": topic,
        "sendSingle": True,
        "key": "m{{.machine}}",
        "headers": {"site": "{{.site}}"},
    }
    action = gateway.action("kafka", settings)
    for number in range(50):
        assert action.submit(rows({"n": number, "machine": 7, "site": "north"}), number)
    assert [outcome for _, outcome in gateway.await_receipts(50)] == ["delivered"] * 50
    found = kafka.records(topic, 50)
    assert [json.loads(record.value())["n"] for record in found] == list(range(50))
    assert {record.key() for record in found} == {b"m7"}
    assert found[0].headers() == [("site", b"north")]


@pytest.mark.parametrize("compression", ["gzip", "lz4", "snappy", "zstd"])
def test_compressed_batches(gateway: Gateway, kafka: Kafka, compression: str) -> None:
    topic = kafka.topic()
    action = gateway.action("kafka", {"brokers": kafka.brokers, "topic": topic, "compression": compression})
    action.submit(rows({"n": 1}, {"n": 2}), "a")
    gateway.await_receipts(1)
    (record,) = kafka.records(topic, 1)
    assert json.loads(record.value()) == [{"n": 1}, {"n": 2}]


def test_the_topic_may_depend_on_the_row(gateway: Gateway, kafka: Kafka) -> None:
    topic = kafka.topic()
    action = gateway.action(
        "kafka", {"brokers": kafka.brokers, "topic": f"{topic}-{{{{.site}}}}", "sendSingle": True}
    )
    action.submit(rows({"n": 1, "site": "a"}, {"n": 2, "site": "b"}), "x")
    gateway.await_receipts(1)
    assert json.loads(kafka.records(f"{topic}-a", 1)[0].value()) == {"n": 1, "site": "a"}
    assert json.loads(kafka.records(f"{topic}-b", 1)[0].value()) == {"n": 2, "site": "b"}


def test_delimited_records_have_their_header(gateway: Gateway, kafka: Kafka) -> None:
    topic = kafka.topic()
    settings = {"brokers": kafka.brokers, "topic": topic, "format": "delimited", "hasHeader": True}
    gateway.action("kafka", settings).submit(rows({"a": 1, "b": "x"}), "x")
    gateway.await_receipts(1)
    assert kafka.records(topic, 1)[0].value() == b"a,b\n1,x"


def test_a_row_without_its_key_is_a_dead_letter_and_the_others_arrive(gateway: Gateway, kafka: Kafka) -> None:
    topic = kafka.topic()
    settings = {"brokers": kafka.brokers, "topic": topic, "sendSingle": True, "key": "{{.machine}}"}
    action = gateway.action("kafka", settings)
    action.submit(rows({"n": 1, "machine": "a"}, {"n": 2}, {"n": 3, "machine": "b"}), "x")
    assert gateway.await_receipts(1) == [("x", "rejected")]
    assert sorted(json.loads(record.value())["n"] for record in kafka.records(topic, 2)) == [1, 3]
    assert "field 'machine' is NULL" in gateway.dead_letters()


def test_too_large_a_record_is_a_dead_letter(gateway: Gateway, kafka: Kafka) -> None:
    topic = kafka.topic()
    action = gateway.action("kafka", {"brokers": kafka.brokers, "topic": topic, "sendSingle": True})
    action.submit(rows({"n": "x" * 2_000_000}, {"n": 2}), "x")
    assert gateway.await_receipts(1) == [("x", "rejected")]
    assert [json.loads(record.value())["n"] for record in kafka.records(topic, 1)] == [2]


def test_without_a_broker_it_waits_and_says_why_once(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {"brokers": f"127.0.0.1:{free_port()}", "topic": "t", "timeout": 1000}
    action = gateway.action("kafka", settings)
    action.submit(rows({"n": 1}), "x")
    wait_for(lambda: action.stats().state == "retrying")
    assert "Kafka" in action.stats().last_error
    assert gateway.receipts == []
    assert [record.message for record in caplog.records if record.name == "penstock.sinks.kafka"] == []


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"topic": "t"}, "says which cluster"),
        ({"brokers": "h:1", "topic": "t", "saslAuthType": "plain"}, "belong together"),
        ({"brokers": "h:1", "topic": "t", "compression": "zlib"}, "compression"),
        ({"brokers": "h:1", "topic": "{{.a}}"}, "must begin with literal text"),
        ({"brokers": "h:1", "topic": "t", "key": "{{len .a}}"}, "only fields"),
    ],
)
def test_settings_that_cannot_work(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        sink_kind("kafka").settings.model_validate(settings)


def test_the_names_of_ekuiper_are_known() -> None:
    written = {
        "brokers": "a:9092,b:9092",
        "topic": "t",
        "saslAuthType": "scram_sha_512",
        "saslUserName": "u",
        "saslPassword": "p",
        "insecureSkipVerify": True,
        "requiredACKs": 1,
        "rootCaPath": "/ca.pem",
    }
    found: Any = sink_kind("kafka").settings.model_validate(written)
    client = found.client_settings
    assert (client["security.protocol"], client["sasl.mechanism"], client["acks"]) == (
        "SASL_SSL",
        "SCRAM-SHA-512",
        1,
    )
    assert client["enable.idempotence"] is False
