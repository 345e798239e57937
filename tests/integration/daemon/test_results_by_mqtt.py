"""Results that the loop publishes: on the connection of the streams where settings agree, in a pause of the
intake and at the end too; a broker that goes away, messages it refuses."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.broker.conftest import Consumer, StartSource, start_source
from tests.integration.daemon.support import STREAM, Process, daemon, publisher
from tests.support.brokers import Mosquitto, make_certificates, mosquitto, password_lines
from tests.support.waiting import wait_for

pytestmark = pytest.mark.broker

__all__ = ["start_source"]

RULES = (
    STREAM
    + """
rules:
  - id: hot
    sql: SELECT n FROM m WHERE n > 0
    actions: [{mqtt: {topic: 'results/{{.n}}', sendSingle: true}}]
  - id: all
    sql: SELECT n FROM m
    actions: [{mqtt: {topic: everything, qos: 0, sendSingle: true}}]
"""
)

TICKS = """
streams:
  clock: {type: simulator, extra: {interval: 5ms, data: ROWS}}
rules:
  - id: ticks
    sql: SELECT n FROM clock
    actions: [{mqtt: {topic: plant/ticks, sendSingle: true}}]
""".replace("ROWS", json.dumps([{"n": n} for n in range(1_000)]))
SLOW_TICKS = TICKS.replace("5ms", "100ms")
"""The first result comes after the streams have been connected."""

BACK = """
streams: {back: {datasource: plant/ticks}}
rules:
  - id: back
    sql: SELECT n FROM back
    actions: [{file: {path: back, sendSingle: true}}]
"""


def numbers(seen: Consumer, prefix: str) -> list[int]:
    return [json.loads(payload)["n"] for topic, payload, *_ in seen.messages if topic.startswith(prefix)]


def actions(gateway: Process, figure: str) -> list[int]:
    """A figure of the first action of each rule."""
    return [rule["actions"][0][figure] for rule in gateway.status()["rules"].values()]


def connected(broker: Mosquitto, before: str = "") -> int:
    """The clients that the broker has seen since its log was `before`."""
    log = (broker.folder / "mosquitto.log").read_text()
    return log.removeprefix(before).count("New client connected")


def test_actions_share_the_connection_of_the_streams(
    tmp_path: Path, broker: Mosquitto, start_source: StartSource
) -> None:
    before = (broker.folder / "mosquitto.log").read_text()  # of the tests that had this broker earlier
    _, seen = start_source(
        broker.url, {"results/#": 1, "everything": 0}, client_id="watcher", status_prefix=None
    )
    with daemon(tmp_path, broker.url, {"rules.yaml": RULES}) as gateway, publisher(broker.port) as plant:
        gateway.wait_ready()
        for n in range(50):
            plant.send("plant/a", {"n": n})
        wait_for(lambda: len(seen.messages) >= 99, what="the results")
        assert numbers(seen, "results") == list(range(1, 50))
        assert numbers(seen, "everything") == list(range(50))
        assert connected(broker, before) == 3, "two of the test, one for streams and results"
        # The broker confirms a message after it has passed it on.
        wait_for(lambda: gateway.status()["rules"]["hot"]["actions"][0]["sent"] == 49, "the confirmations")
        assert gateway.stop() == 0


def test_an_action_of_another_user_has_a_connection_of_its_own(tmp_path: Path) -> None:
    lines = password_lines(tmp_path / "m", "results", "correct horse")
    with mosquitto(tmp_path / "m", lines=lines) as broker, publisher(broker.port) as plant:
        other = "topic: 'results/{{.n}}', username: results, password: correct horse"
        rules = RULES.replace("topic: 'results/{{.n}}'", other)
        with daemon(tmp_path, broker.url, {"rules.yaml": rules}) as gateway:
            gateway.wait_ready()
            plant.send("plant/a", {"n": 1})
            wait_for(lambda: actions(gateway, "sent") == [1, 1], what="both results")
            assert connected(broker) == 3, "that of the test, that of the streams, that of the other user"


def test_an_encrypted_connection_is_shared(tmp_path: Path) -> None:
    made = make_certificates(tmp_path / "certificates")
    with mosquitto(tmp_path / "m", lines=made.lines(client_required=True)) as broker:
        config = tmp_path / "gateway.yaml"
        files = f"caFile: {made.authority}, certFile: {made.client}, keyFile: {made.client_key}"
        config.write_text(f"mqtt: {{{files}}}\n", "utf-8")
        url = f"mqtts://127.0.0.1:{broker.port}"
        rules = {"a.yaml": SLOW_TICKS, "b.yaml": BACK}
        with daemon(tmp_path, url, rules, "--config", str(config)) as gateway:
            wait_for(lambda: len(gateway.output("back")) >= 20, what="results that come back")
            assert [row["n"] for row in gateway.output("back")[:20]] == [*range(20)]
            assert connected(broker) == 1


def test_results_leave_a_connection_on_which_the_broker_takes_few_at_a_time(tmp_path: Path) -> None:
    """Mosquitto tells 20 with MQTT 5, as it comes."""
    with mosquitto(tmp_path / "m", lines=("max_inflight_messages 20",)) as broker:
        rules = {"a.yaml": SLOW_TICKS, "b.yaml": BACK}
        with daemon(tmp_path, broker.url, rules) as gateway:
            wait_for(lambda: len(gateway.output("back")) >= 20, what="results that come back")
            assert sorted(row["n"] for row in gateway.output("back")[:20]) == [*range(20)]
            assert connected(broker) == 2
            assert gateway.stop() == 0


def test_results_go_on_without_the_streams_of_the_connection(tmp_path: Path, broker: Mosquitto) -> None:
    """The connection has a name; it is shared though its stream is declared after the action."""
    with mosquitto(tmp_path / "other") as other:
        config = tmp_path / "gateway.yaml"
        config.write_text(f"connections: {{line2: {{server: '{other.url}'}}}}\n", "utf-8")
        ticks = SLOW_TICKS.replace("topic:", "connectionSelector: line2, topic:")
        back = BACK.replace("plant/ticks", "plant/ticks, confKey: line2")
        with daemon(
            tmp_path, broker.url, {"a.yaml": ticks, "b.yaml": back}, "--config", str(config)
        ) as gateway:
            wait_for(lambda: len(gateway.output("back")) >= 5, what="results that come back")
            (gateway.rules / "b.yaml").unlink()
            wait_for(lambda: "back" not in gateway.status()["rules"], what="the end of the stream")
            sent = gateway.status()["rules"]["ticks"]["actions"][0]["sent"]
            wait_for(
                lambda: gateway.status()["rules"]["ticks"]["actions"][0]["sent"] >= sent + 10, what="results"
            )
            assert connected(other) == 1


@pytest.mark.parametrize("qos", [0, 1])
def test_results_are_confirmed_while_a_slow_sink_holds_up_the_intake(
    tmp_path: Path, start_source: StartSource, qos: int
) -> None:
    far = Mosquitto(tmp_path / "far")
    with mosquitto(tmp_path / "m") as broker, ExitStack() as ending:
        ending.callback(far.stop)
        rules = RULES + (
            "  - id: far\n    sql: SELECT n FROM m\n    actions:\n"
            f"      - mqtt: {{server: '{far.url}', retryInterval: 50ms, bufferLength: 100, topic: far}}\n"
        )
        _, seen = start_source(
            broker.url, {"results/#": 1, "everything": 1}, client_id="watcher", status_prefix=None
        )
        with (
            daemon(
                tmp_path, broker.url, {"rules.yaml": rules}, PENSTOCK__LIMITS__DELIVERYROWSMAX="1"
            ) as gateway,
            publisher(broker.port) as plant,
        ):
            gateway.wait_ready()
            for n in range(1_000):
                plant.send("plant/a", {"n": n}, qos, wait=n == 999)
            wait_for(lambda: gateway.status()["sources"]["mqtt"]["paused"] == 1, what="the pause")
            taken = gateway.status()["rules"]["all"]["counters"]["events_in"]
            wait_for(
                lambda: gateway.status()["rules"]["hot"]["actions"][0]["sent"] == taken - 1,
                what="confirmations",
            )
            assert gateway.status()["sources"]["mqtt"]["paused"] == 1
            far.start()
            wait_for(lambda: len(numbers(seen, "everything")) >= 1_000, what="the rest")
            wait_for(lambda: actions(gateway, "sent") == [999, 1_000, 1_000], what="all results")
            assert numbers(seen, "results") == [*range(1, 1_000)]
            assert gateway.status()["sources"]["mqtt"]["epoch"] == 1, "the connection has lasted"
            assert gateway.stop() == 0


def test_an_orderly_end_delivers_each_result_once(
    tmp_path: Path, broker: Mosquitto, start_source: StartSource
) -> None:
    """Results and acknowledgements go out on one connection before it is closed."""
    _, seen = start_source(broker.url, {"results/#": 1}, client_id="reader", status_prefix=None)
    with daemon(tmp_path, broker.url, {"rules.yaml": RULES}) as gateway, publisher(broker.port) as plant:
        gateway.wait_ready()
        for n in range(3_000):
            plant.send("plant/a", {"n": n}, wait=False)
        seen.wait(100)
        assert gateway.stop() == 0
        before = len(seen.messages)
        gateway.start()
        wait_for(lambda: len(seen.messages) >= 2_999, what="the rest")
        assert numbers(seen, "results") == [*range(1, 3_000)] and before < 2_999
        assert gateway.status()["intake"]["redelivered"] == 0


def test_results_wait_for_a_broker_that_is_away(
    tmp_path: Path, broker: Mosquitto, start_source: StartSource
) -> None:
    """The broker of the results is another one than that of the streams, and starts last."""
    with mosquitto(tmp_path / "other") as other:
        other.stop()
        rules = RULES.replace("topic:", f"server: '{other.url}', retryInterval: 50ms, topic:")
        with (
            daemon(tmp_path / "gateway", broker.url, {"rules.yaml": rules}) as gateway,
            publisher(broker.port) as plant,
        ):
            gateway.wait_ready()
            for n in range(1, 4):
                plant.send("plant/a", {"n": n})
            wait_for(
                lambda: gateway.status()["rules"]["hot"]["actions"][0]["queued"] == 3, what="waiting results"
            )
            assert gateway.status()["rules"]["hot"]["actions"][0]["state"] == "retrying"
            other.start()
            wait_for(lambda: gateway.status()["rules"]["hot"]["actions"][0]["queued"] == 0, what="delivery")
            stats = gateway.status()["rules"]["hot"]["actions"][0]
            assert (stats["state"], stats["sent"], stats["last_error"]) == ("ok", 3, "")


def test_a_topic_that_is_none_becomes_a_dead_letter(tmp_path: Path, broker: Mosquitto) -> None:
    rules = RULES.replace("SELECT n FROM m WHERE n > 0", "SELECT n, t FROM m WHERE n > 0").replace(
        "{{.n}}", "{{.t}}"
    )
    with daemon(tmp_path, broker.url, {"rules.yaml": rules}) as gateway, publisher(broker.port) as plant:
        gateway.wait_ready()
        plant.send("plant/a", {"n": 1, "t": "x" * 70_000})
        letters = tmp_path / "data" / "dead-letters" / "dead-letters.jsonl"
        wait_for(lambda: letters.exists() and letters.read_text().endswith("\n"), what="the dead letter")
        assert "is no topic to publish to" in json.loads(letters.read_text().splitlines()[0])["reason"]
        assert gateway.status()["rules"]["hot"]["actions"][0]["rejected"] == 1
