"""How the source meets a broker, loses it and finds it again."""

from __future__ import annotations

import signal
import socket
import time
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from edge.base.message import Message
from edge.config.mqtt_options import MqttOptions
from edge.intake.sources.mqtt.client import connect, make_client
from edge.intake.sources.mqtt.visit import Visit, VisitFailed
from rules.secrets import Secret
from tests.broker.conftest import Consumer, Publisher, StartSource, cut_connection
from tests.support.brokers import Mosquitto, amqtt, make_certificates, mosquitto, password_lines
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE_MS, wait_for

pytestmark = pytest.mark.broker


def test_a_broker_that_is_absent_at_start(tmp_path: Path, start_source: StartSource) -> None:
    broker = Mosquitto(tmp_path / "m")
    source, consumer = start_source(broker.url, {"t": 1}, ready=False)
    wait_for(lambda: source.stats["connect_failures"] >= 2, what="two attempts")
    assert source.problem is not None and "refused" in source.problem.lower()
    assert not source.connected
    broker.start()
    wait_for(lambda: source.ready, what="connection")
    assert source.problem is None
    publisher = Publisher(broker.port)
    publisher.publish("t", b"x")
    consumer.wait(1)
    publisher.close()
    broker.stop()


def test_an_unknown_host_is_a_problem_and_not_an_end(start_source: StartSource) -> None:
    source, _ = start_source("mqtt://no-such-host.invalid", {"t": 1}, ready=False)
    wait_for(lambda: source.stats["connect_failures"] >= 2, what="two attempts")
    assert source.problem and source.problem != "not connected yet"


def test_a_broker_killed_with_persistence_keeps_the_session(
    tmp_path: Path, start_source: StartSource
) -> None:
    """Stored by autosave before the kill: the backlog and the subscription are there when it is back."""
    with mosquitto(
        tmp_path / "m", persistence=True, lines=("autosave_interval 1", "autosave_on_changes true")
    ) as broker:
        source, _ = start_source(broker.url, {"t": 1})
        assert source.stop(PATIENCE_MS)
        publisher = Publisher(broker.port)
        publisher.publish_many("t", [b"%d" % number for number in range(50)])
        publisher.publish("other", b"one more change")
        publisher.close()
        broker.restart()
        _, consumer = start_source(broker.url, {"t": 1})
        consumer.wait(50)
        assert consumer.payloads == [b"%d" % number for number in range(50)]


@pytest.mark.parametrize("reader", ["buffered", "stock"])
def test_a_broker_that_hangs_is_found_by_pings(
    tmp_path: Path, start_source: StartSource, reader: str
) -> None:
    with mosquitto(tmp_path / "m") as broker:
        source, consumer = start_source(broker.url, {"t": 1}, reader=reader, keepalive_s=1)
        broker.signal(signal.SIGSTOP)
        wait_for(lambda: not source.connected, "the loss, found by pings")
        broker.signal(signal.SIGCONT)
        wait_for(lambda: source.ready, "connection")
        publisher = Publisher(broker.port)
        publisher.publish("t", b"x")
        consumer.wait(1)
        publisher.close()


@pytest.mark.parametrize("reader", ["buffered", "stock"])
def test_tls_with_a_client_certificate(tmp_path: Path, start_source: StartSource, reader: str) -> None:
    made = make_certificates(tmp_path / "certificates")
    with mosquitto(tmp_path / "m", lines=made.lines(client_required=True)) as broker:
        source, consumer = start_source(
            f"mqtts://127.0.0.1:{broker.port}",
            {"t": 1},
            reader=reader,
            ca_file=made.authority,
            cert_file=made.client,
            key_file=made.client_key,
        )
        publisher = paho.Client(CallbackAPIVersion.VERSION2)
        publisher.tls_set(str(made.authority), str(made.client), str(made.client_key))
        publisher.connect("127.0.0.1", broker.port)
        publisher.loop_start()
        sent = [b"%d" % number + b"." * 3_000 for number in range(500)]
        for payload in sent:
            publisher.publish("t", payload, qos=1)
        consumer.wait(len(sent))
        publisher.disconnect()
        publisher.loop_stop()
        assert consumer.payloads == sent
        wait_for(lambda: source.stats["acknowledged"] == len(sent), what="acknowledgements")


def test_a_port_that_speaks_tls_or_does_not_is_asked_about(tmp_path: Path, start_source: StartSource) -> None:
    made = make_certificates(tmp_path / "certificates")
    with (
        mosquitto(tmp_path / "plain") as plain,
        mosquitto(tmp_path / "tls", lines=made.lines(client_required=False)) as tls,
    ):
        for url, remedy in (
            (f"mqtts://127.0.0.1:{plain.port}", "does this port speak TLS? mqtt:// is without"),
            (f"mqtt://127.0.0.1:{tls.port}", "does this port speak TLS? That is mqtts://"),
        ):
            source, _ = start_source(url, {"t": 1}, ready=False)
            wait_for(lambda: source.stats["connect_failures"] > 0, what="an attempt")  # noqa: B023
            assert source.problem is not None and source.problem.endswith(remedy)


def test_a_broker_that_demands_a_certificate_is_told_of_by_name(
    tmp_path: Path, start_source: StartSource
) -> None:
    """TLS 1.3 refuses the client after its handshake, so the broker hangs up on CONNECT or behind it."""
    made = make_certificates(tmp_path / "certificates")
    with mosquitto(tmp_path / "m", lines=made.lines(client_required=True)) as broker:
        url = f"mqtts://127.0.0.1:{broker.port}"
        source, _ = start_source(url, {"t": 1}, ready=False, ca_file=made.authority)
        for attempt in range(1, 4):
            wait_for(lambda: source.stats["connect_failures"] >= attempt, what="an attempt")  # noqa: B023
            assert source.problem and source.problem.count("certFile") == 1
        with pytest.raises(VisitFailed, match="certFile"):
            Visit(MqttOptions(url, "visitor", ca_file=made.authority))


def test_a_visitor_of_the_wrong_port_is_told_of_it(tmp_path: Path) -> None:
    made = make_certificates(tmp_path / "certificates")
    with (
        mosquitto(tmp_path / "plain") as plain,
        mosquitto(tmp_path / "tls", lines=made.lines()) as tls,
    ):
        with pytest.raises(VisitFailed, match=r"does this port speak TLS\? That is mqtts://"):
            Visit(MqttOptions(f"mqtt://127.0.0.1:{tls.port}", "visitor"))
        with pytest.raises(VisitFailed, match=r"does this port speak TLS\? mqtt:// is without"):
            Visit(MqttOptions(f"mqtts://127.0.0.1:{plain.port}", "visitor"))


def test_a_server_that_hangs_up_on_connect_has_a_reason() -> None:
    """A broker that is gone before CONNECT was sent: paho returns without a socket."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        options = MqttOptions(f"mqtt://127.0.0.1:{server.getsockname()[1]}", "visitor")
        client = make_client(options, "5")

        def shut(_client: object, _userdata: object, made: Any) -> None:
            made.shutdown(socket.SHUT_RDWR)

        client.on_socket_open = shut
        with pytest.raises(ConnectionResetError, match="ended the connection before it answered"):
            connect(client, options, "5")


def test_tls_refuses_a_broker_it_does_not_know(tmp_path: Path, start_source: StartSource) -> None:
    made, other = make_certificates(tmp_path / "a"), make_certificates(tmp_path / "b")
    with mosquitto(tmp_path / "m", lines=made.lines()) as broker:
        url = f"mqtts://127.0.0.1:{broker.port}"
        source, _ = start_source(url, {"t": 1}, ready=False, ca_file=other.authority)
        wait_for(lambda: source.stats["connect_failures"] >= 1, what="an attempt")
        assert source.problem and "certificate verify failed" in source.problem
        start_source(url, {"t": 1}, ca_file=other.authority, insecure_skip_verify=True, client_id="careless")


def test_user_and_password(tmp_path: Path, start_source: StartSource) -> None:
    lines = password_lines(tmp_path / "m", "gateway", "correct horse")
    with mosquitto(tmp_path / "m", lines=lines, anonymous=False) as broker:
        start_source(broker.url, {"t": 1}, username="gateway", password=Secret("correct horse"))
        wrong, _ = start_source(
            broker.url,
            {"t": 1},
            ready=False,
            client_id="wrong",
            username="gateway",
            password=Secret("battery"),
        )
        wait_for(lambda: wrong.stats["connect_failures"] >= 2, what="two attempts")
        assert wrong.problem == (
            "broker refused the connection: Not authorized; check username, password and clientId"
        )
        assert wrong.version == "5", "a wrong password is no reason to try another version"


def test_birth_death_and_last_will(broker: Mosquitto, start_source: StartSource) -> None:
    _, seen = start_source(broker.url, {"penstock/+/status": 1}, client_id="watcher", status_prefix=None)
    source, _ = start_source(broker.url, {"t": 1})
    seen.wait(1)
    assert source.stop(PATIENCE_MS)
    seen.wait(2)
    source, _ = start_source(broker.url, {"t": 1})
    seen.wait(3)
    cut_connection(source)
    seen.wait(5)
    here, gone = b'{"state":"online"}', b'{"state":"offline"}'
    assert {topic for topic, *_ in seen.messages} == {"penstock/gateway/status"}
    assert seen.payloads[:5] == [here, gone, here, gone, here]
    _, kept = start_source(broker.url, {"penstock/+/status": 1}, client_id="late", status_prefix=None)
    kept.wait(1)
    assert kept.payloads == [here], "the last word is kept for who comes later"


def test_a_session_of_another_data_directory_is_reported(
    broker: Mosquitto, start_source: StartSource, caplog: pytest.LogCaptureFixture
) -> None:
    def told() -> list[str]:
        return [record.message for record in caplog.records if record.message == "mqtt.session_unknown"]

    source, _ = start_source(broker.url, {"t": 1})
    cut_connection(source)
    wait_for(lambda: source.stats["connects"] == 2 and source.ready, what="the next connection")
    source.stop(PATIENCE_MS)
    assert told() == [], "the session began with this run"
    source, _ = start_source(broker.url, {"other": 1})
    assert told() == ["mqtt.session_unknown"]


def test_two_gateways_of_one_name_do_not_spin(broker: Mosquitto, start_source: StartSource) -> None:
    """The broker throws the older one out, again and again: the pauses in between must grow."""
    one, _ = start_source(broker.url, {"t": 1}, reconnect_ms_min=100, reconnect_ms_max=2_000)
    two, _ = start_source(broker.url, {"t": 1}, ready=False, reconnect_ms_min=100, reconnect_ms_max=2_000)
    wait_for(lambda: one.stats["connects"] + two.stats["connects"] >= 4, what="the quarrel")
    seen = one.stats["connects"] + two.stats["connects"]
    time.sleep(1)
    assert one.stats["connects"] + two.stats["connects"] - seen <= 8


def test_a_consumer_that_fails_gets_its_messages_again(
    broker: Mosquitto, publish: Publisher, start_source: StartSource
) -> None:
    class Clumsy(Consumer):
        failures = 2

        def on_batch(self, batch: list[Message]) -> None:
            if self.failures:
                self.failures -= 1
                raise RuntimeError("dropped it")
            super().on_batch(batch)

    _, consumer = start_source(broker.url, {"t": 1}, Clumsy())
    publish.publish("t", b"precious")
    consumer.wait(1)
    assert consumer.payloads == [b"precious"]


def test_a_filter_that_the_broker_refuses_is_told(tmp_path: Path, start_source: StartSource) -> None:
    folder = tmp_path / "m"
    folder.mkdir()
    (folder / "acl").write_text("topic readwrite allowed/#\ntopic write penstock/#\n")
    with mosquitto(folder, lines=(f"acl_file {folder / 'acl'}",)) as broker:
        source, consumer = start_source(broker.url, {"allowed/t": 1, "secret/t": 1})
        publisher = Publisher(broker.port)
        publisher.publish("allowed/t", b"x")
        consumer.wait(1)
        publisher.close()
        assert source.connected
        assert set(source.refused) <= {"secret/t"}  # mosquitto accepts the filter and withholds the messages


def test_the_embedded_broker_and_the_older_version(start_source: StartSource) -> None:
    """amqtt knows only 3.1.1: the source finds out by itself."""
    with amqtt() as broker:
        source, consumer = start_source(broker.url, {"plant/#": 1}, connect_timeout_s=1.0)
        assert source.version == "3.1.1"
        publisher = paho.Client(CallbackAPIVersion.VERSION2, protocol=paho.MQTTv311)
        publisher.connect("127.0.0.1", broker.port)
        publisher.loop_start()
        for number in range(20):
            publisher.publish("plant/7", b"%d" % number, qos=1)
        consumer.wait(20)
        publisher.disconnect()
        publisher.loop_stop()
        assert consumer.payloads == [b"%d" % number for number in range(20)]
        assert source.stop(PATIENCE_MS)


def test_stop_ends_in_time_while_the_broker_is_away(start_source: StartSource) -> None:
    seldom = {"reconnect_ms_min": 3_600_000, "reconnect_ms_max": 3_600_000}
    source, _ = start_source(f"mqtt://127.0.0.1:{free_port()}", {"t": 1}, ready=False, **seldom)
    wait_for(lambda: source.stats["connect_failures"] >= 1, what="an attempt")
    assert source.stop(PATIENCE_MS), "it does not wait for the next attempt"
    assert source.problem == "stopped"


@pytest.mark.parametrize("reader", ["buffered", "stock"])
def test_qos_2_where_loss_is_allowed(
    broker: Mosquitto, publish: Publisher, start_source: StartSource, reader: str
) -> None:
    _, consumer = start_source(broker.url, {"t": 2}, reader=reader, no_loss=False)
    for number in range(50):
        publish.publish("t", b"%d" % number, qos=2)
    consumer.wait(50)
    assert consumer.payloads == [b"%d" % number for number in range(50)]
    assert all(token is None and flags >> 1 & 3 == 2 for _, _, token, flags in consumer.messages)


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_a_rival_with_the_same_client_id_is_named(
    tmp_path: Path, start_source: StartSource, version: Any
) -> None:
    """Two clients with one id throw each other out for ever; the problem says so, and what to do."""
    with mosquitto(tmp_path / "m") as broker:
        options = {"version": version, "reconnect_ms_max": 600}
        source, _ = start_source(broker.url, {"t": 1}, **options)
        rival, _ = start_source(broker.url, {"t": 1}, ready=False, **options)
        wait_for(
            lambda: any("another client connects as" in (one.problem or "") for one in (source, rival)),
            "it",
        )
