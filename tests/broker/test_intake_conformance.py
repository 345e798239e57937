"""Both readers, both versions of MQTT, QoS 0 and 1, one behaviour, against a real mosquitto."""

from __future__ import annotations

from pathlib import Path

import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from edge.base.message import DUPLICATE, RETAINED, qos_of
from tests.broker.conftest import Consumer, Publisher, StartSource, cut_connection
from tests.support.brokers import Mosquitto, mosquitto
from tests.support.waiting import PATIENCE_MS, wait_for

pytestmark = pytest.mark.broker

READERS = ["buffered", "stock"]
VERSIONS = ["5", "3.1.1"]


@pytest.fixture(params=[(reader, version) for reader in READERS for version in VERSIONS], ids="-".join)
def settings(request: pytest.FixtureRequest) -> dict[str, str]:
    reader, version = request.param
    return {"reader": reader, "version": version}


@pytest.mark.parametrize("qos", [0, 1])
def test_everything_arrives_once_and_in_order(
    broker: Mosquitto, publish: Publisher, start_source: StartSource, settings: dict[str, str], qos: int
) -> None:
    source, consumer = start_source(broker.url, {"plant/+/temp": qos}, **settings)
    sent = [b"%d" % number for number in range(3_000)]
    publish.publish_many("plant/7/temp", sent, qos)
    consumer.wait(len(sent))
    assert consumer.payloads == sent
    assert {topic for topic, *_ in consumer.messages} == {"plant/7/temp"}
    assert {qos_of(flags) for *_, flags in consumer.messages} == {qos}
    assert all((token is not None) == (qos == 1) for _, _, token, _ in consumer.messages)
    wait_for(lambda: source.stats["acknowledged"] == len(sent) * qos, what="acknowledgements")
    assert source.stats["duplicates"] == 0
    assert source.reader == settings["reader"] and source.version == settings["version"]


@pytest.mark.parametrize("size", [0, 1, 100, 119, 120, 127, 128, 16_000, 16_384, 65_536, 300_000])
def test_payloads_of_any_size_arrive_whole(
    broker: Mosquitto, publish: Publisher, start_source: StartSource, settings: dict[str, str], size: int
) -> None:
    """Sizes around those at which the packet's length takes one byte more, and above the receive buffer."""
    _, consumer = start_source(broker.url, {"t": 1}, **settings)
    sent = [bytes(number + index & 0xFF for index in range(size)) for number in range(3)]
    publish.publish_many("t", [*sent, b"end"])
    consumer.wait(4)
    assert consumer.payloads == [*sent, b"end"]


def test_a_packet_over_the_bound_is_reported_and_acknowledged(
    broker: Mosquitto, publish: Publisher, start_source: StartSource, settings: dict[str, str]
) -> None:
    """An MQTT 5 broker that knew the bound would drop the message, and nobody would ever hear of it."""
    source, consumer = start_source(broker.url, {"t": 1}, packet_bytes_max=1_000, **settings)
    publish.publish_many("t", [b"x" * 5_000, b"end"])
    consumer.wait(1)
    assert consumer.payloads == [b"end"]
    # 5000 bytes of payload, 2 + 1 of the topic, 2 of the packet id, and in MQTT 5 the length of the
    # properties.
    length = 5_006 if settings["version"] == "5" and settings["reader"] == "buffered" else 5_005
    assert [(topic, reason) for topic, _, _, reason in consumer.bad] == [
        ("t", f"the packet is longer than the 1000 bytes allowed: {length}")
    ]
    wait_for(lambda: source.stats["acknowledged"] == 2, what="acknowledgements")


def test_what_was_not_acknowledged_comes_again_after_a_kill(
    broker: Mosquitto, publish: Publisher, start_source: StartSource, settings: dict[str, str]
) -> None:
    source, consumer = start_source(broker.url, {"t": 1}, Consumer(acknowledging=False), **settings)
    publish.publish_many("t", [b"%d" % number for number in range(20)])
    consumer.wait(20)
    consumer.acknowledge(consumer.messages[:5])
    wait_for(lambda: source.stats["acknowledged"] == 5, what="acknowledgements")
    cut_connection(source)
    consumer.wait(35)
    again = consumer.messages[20:]
    assert [payload for _, payload, _, _ in again] == [b"%d" % number for number in range(5, 20)]
    assert all(flags & DUPLICATE for *_, flags in again)
    assert source.stats["duplicates"] == 15
    assert source.stats["connects"] == 2


def test_an_acknowledgement_of_an_earlier_connection_is_dropped(
    broker: Mosquitto, publish: Publisher, start_source: StartSource, settings: dict[str, str]
) -> None:
    """The same packet id means another message on the next connection: confirming it would lose that one."""
    source, consumer = start_source(broker.url, {"t": 1}, Consumer(acknowledging=False), **settings)
    publish.publish("t", b"first")
    consumer.wait(1)
    old = list(consumer.messages)
    cut_connection(source)
    consumer.wait(2)
    consumer.acknowledge(old)
    wait_for(lambda: source.stats["stale_acknowledgements"] == 1, what="the dropped acknowledgement")
    cut_connection(source)
    consumer.wait(3)
    assert consumer.payloads == [b"first"] * 3, "the broker still had it, because nobody had acknowledged it"
    assert len({token for _, _, token, _ in consumer.messages}) == 3


def test_messages_sent_while_away_arrive(
    broker: Mosquitto, publish: Publisher, start_source: StartSource, settings: dict[str, str]
) -> None:
    source, consumer = start_source(broker.url, {"t": 1}, **settings)
    publish.publish("t", b"before")
    consumer.wait(1)
    wait_for(lambda: source.stats["acknowledged"] == 1, what="acknowledgement")
    assert source.stop(PATIENCE_MS)
    log = broker.folder / "mosquitto.log"
    wait_for(
        lambda: "Client gateway disconnected" in log.read_text(),
        what="the broker to notice the disconnection",
    )
    publish.publish_many("t", [b"%d" % number for number in range(2_000)])
    _, back = start_source(broker.url, {"t": 1}, **settings)
    back.wait(2_000)
    assert back.payloads == [b"%d" % number for number in range(2_000)]
    assert not any(flags & DUPLICATE for *_, flags in back.messages)


def test_a_pause_stops_reading_and_keeps_the_connection(
    tmp_path: Path, start_source: StartSource, settings: dict[str, str]
) -> None:
    """Paused for two pings: the broker would hang up after one and a half keepalive times without one."""
    with mosquitto(tmp_path / "m", lines=("log_type all",)) as broker:
        publish = Publisher(broker.port)
        source, consumer = start_source(broker.url, {"t": 1}, keepalive_s=3, **settings)
        source.pause()
        wait_for(lambda: source.stats["paused"] == 1, what="pause")
        publish.publish("t", b"wakes the reader that was waiting already")
        publish.publish_many("t", [b"%d" % number for number in range(3_000)])
        seen = len(consumer.messages)
        assert seen <= 1
        log = broker.folder / "mosquitto.log"
        pings = log.read_text().count("PINGREQ from gateway")
        wait_for(lambda: log.read_text().count("PINGREQ from gateway") >= pings + 2, "two pings")
        assert len(consumer.messages) == seen
        source.resume()
        consumer.wait(3_001)
        assert consumer.payloads[1:] == [b"%d" % number for number in range(3_000)]
        assert source.stats["connects"] == 1
        publish.close()
        assert source.stop(PATIENCE_MS)


def test_filters_change_while_running(
    broker: Mosquitto, publish: Publisher, start_source: StartSource, settings: dict[str, str]
) -> None:
    source, consumer = start_source(broker.url, {"a": 1, "b": 1}, **settings)
    source.set_subscriptions({"b": 1, "c/#": 1})
    wait_for(lambda: source.ready, what="the new subscription")
    for topic in ("a", "b", "c/1/2"):
        publish.publish(topic, topic.encode())
    consumer.wait(2)
    assert sorted(consumer.payloads) == [b"b", b"c/1/2"]


def test_overlapping_wildcards(
    broker: Mosquitto, publish: Publisher, start_source: StartSource, settings: dict[str, str]
) -> None:
    """A broker may send a copy for each filter that matches, as mosquitto does in MQTT 5: the daemon does
    not subscribe to a filter that another one covers."""
    _, consumer = start_source(broker.url, {"plant/#": 1, "plant/+/temp": 1, "+/7/#": 1}, **settings)
    publish.publish("plant/7/temp", b"21.5")
    publish.publish("plant/8/end", b"end")
    wait_for(lambda: b"end" in consumer.payloads, what="the last message")
    copies = 1 if settings["version"] == "3.1.1" else 3
    assert consumer.payloads == [b"21.5"] * copies + [b"end"]


def test_retained_messages_are_marked_and_come_once(
    broker: Mosquitto, publish: Publisher, start_source: StartSource, settings: dict[str, str]
) -> None:
    publish.publish("t", b"kept", retain=True)
    source, consumer = start_source(broker.url, {"t": 1}, **settings)
    consumer.wait(1)
    assert consumer.messages[0][3] & RETAINED
    wait_for(lambda: source.stats["acknowledged"] == 1, what="acknowledgement")
    cut_connection(source)
    wait_for(lambda: source.stats["connects"] == 2 and source.ready, what="reconnect")
    publish.publish("t", b"live")
    consumer.wait(2)
    assert consumer.payloads == [b"kept", b"live"], "a session that is still there gets no retained storm"
    assert not consumer.messages[1][3] & RETAINED


def test_properties_are_passed_over(
    broker: Mosquitto, publish: Publisher, start_source: StartSource, settings: dict[str, str]
) -> None:
    """Short ones, and some whose length takes two bytes."""
    _, consumer = start_source(broker.url, {"t": 1}, **settings)
    for length in (1, 300):
        properties = Properties(PacketTypes.PUBLISH)
        properties.UserProperty = [("trace", "x" * length)]
        properties.MessageExpiryInterval = 60
        properties.ResponseTopic = "reply/here"
        publish.publish("t", b"body %d" % length, properties=properties)
    consumer.wait(2)
    assert consumer.payloads == [b"body 1", b"body 300"]


def test_a_restart_of_the_broker_is_survived(
    broker: Mosquitto, start_source: StartSource, settings: dict[str, str]
) -> None:
    """This broker keeps nothing: the session is gone, and the filters must be subscribed again."""
    source, consumer = start_source(broker.url, {"t": 1}, **settings)
    before = Publisher(broker.port)
    before.publish("t", b"one")
    consumer.wait(1)
    before.close()
    broker.stop()
    wait_for(lambda: source.problem is not None, what="the loss")
    broker.start()
    wait_for(lambda: source.ready, what="reconnect")
    after = Publisher(broker.port)
    after.publish("t", b"two")
    consumer.wait(2)
    after.close()
    assert consumer.payloads == [b"one", b"two"]
