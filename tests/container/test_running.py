"""The image running as a gateway: a real broker, a read-only root, rules that change, an
orderly stop, a restart."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from tests.container.engine import Container, Engine
from tests.support.brokers import Mosquitto
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE_S, wait_for

pytestmark = pytest.mark.container

SECRET = "correct-horse-battery"
USER = 10001

STREAM = """\
streams:
  - {name: readings, datasource: plant/+/temp, columns: {temp: bigint}}
"""

RULE = """\
rules:
  - id: {id}
    sql: SELECT sum(temp) AS total, count(*) AS n FROM readings GROUP BY COUNTWINDOW({count})
    actions:
      - mqtt:
          server: "{broker}"
          topic: out/{id}
          sendSingle: true
          username: operator
          password: "${{env:PENSTOCK_PASSWORD}}"
"""


class Plant:
    """A client that publishes readings and keeps what the rules send."""

    def __init__(self, broker: Mosquitto) -> None:
        self.received: list[tuple[str, dict[str, int]]] = []
        self._subscribed = threading.Event()
        self._client = paho.Client(CallbackAPIVersion.VERSION2)
        self._client.on_message = lambda _c, _u, message: self.received.append(
            (message.topic, json.loads(message.payload))
        )
        self._client.on_subscribe = lambda *_: self._subscribed.set()
        self._client.connect("127.0.0.1", broker.port)
        self._client.loop_start()
        self._client.subscribe("out/#", qos=1)
        assert self._subscribed.wait(PATIENCE_S)

    def publish(self, *temperatures: int) -> None:
        for temperature in temperatures:
            sent = self._client.publish("plant/p1/temp", json.dumps({"temp": temperature}), qos=1)
            wait_for(sent.is_published, "publishing")

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


@pytest.fixture
def plant(broker: Mosquitto) -> Iterator[Plant]:
    found = Plant(broker)
    yield found
    found.close()


@pytest.fixture
def gateway(engine: Engine, image: str, broker: Mosquitto, tmp_path: Path) -> Iterator[Container]:
    rules = tmp_path / "rules"
    rules.mkdir()
    (rules / "streams.yaml").write_text(STREAM)
    (rules / "fours.yaml").write_text(RULE.format(id="fours", count=4, broker=broker.url))
    environment = {
        "PENSTOCK__MQTT__SERVER": broker.url,
        "PENSTOCK__HTTP__BIND": f"127.0.0.1:{free_port()}",
        "PENSTOCK__HTTP__OPEN": "status",
        "PENSTOCK__GATEWAY__ID": "container-test",
        "PENSTOCK_PASSWORD": SECRET,
    }
    made = Container(engine, image, f"penstock-{broker.port}", rules, environment)
    try:
        yield made.start()
    finally:
        made.remove()
        engine("volume", "rm", "--force", f"{made.name}-data", check=False)


def ready(gateway: Container) -> None:
    wait_for(lambda: gateway.run("penstock", "health", "--ready").returncode == 0, "readiness")


def events_of(gateway: Container, rule: str) -> int:
    """How many events a rule has taken, as its status page says."""
    address = gateway.environment["PENSTOCK__HTTP__BIND"]
    with urlopen(f"http://{address}/status", timeout=PATIENCE_S) as answer:  # PENSTOCK__HTTP__OPEN lets it
        return int(json.load(answer)["rules"][rule]["counters"]["events_in"])


def test_it_runs_without_privileges(gateway: Container) -> None:
    status = Path(f"/proc/{gateway.state()['Pid']}/status").read_text()
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert set(fields["Uid"].split()) == {str(USER)}
    assert int(fields["CapEff"], 16) == 0
    assert fields["NoNewPrivs"] == "1"


def test_only_the_data_directory_can_be_written(gateway: Container) -> None:
    ready(gateway)
    for path in ("/x", "/tmp/x", "/rules/x", "/opt/penstock/x"):
        assert gateway.run("touch", path).returncode != 0, path
    assert gateway.run("touch", "/data/x").returncode == 0
    changed = gateway.engine("diff", gateway.name).stdout.split("\n")
    assert not [
        line for line in changed if line[:1] in ("A", "D") and "/data" not in line and "/run" not in line
    ]


def test_doctor_finds_no_error(gateway: Container) -> None:
    done = gateway.run("penstock", "doctor")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "data directory /data" in done.stdout
    assert SECRET not in done.stdout + done.stderr


def test_rules_are_reloaded_and_nothing_prints_the_secret(
    gateway: Container, plant: Plant, broker: Mosquitto
) -> None:
    ready(gateway)
    (gateway.rules / "pairs.yaml").write_text(RULE.format(id="pairs", count=2, broker=broker.url))
    wait_for(lambda: "pairs" in gateway.run("penstock", "top", "--once").stdout, "reload")
    plant.publish(20, 22)
    wait_for(lambda: ("out/pairs", {"total": 42, "n": 2}) in plant.received, "the new rule's message")
    shown = gateway.log() + gateway.run("penstock", "top", "--once").stdout
    assert SECRET not in shown


def test_a_stop_stores_the_state_and_a_restart_goes_on(gateway: Container, plant: Plant) -> None:
    ready(gateway)
    plant.publish(1, 2)
    wait_for(lambda: events_of(gateway, "fours") == 2, "two events")
    assert gateway.stop() == 0, "podman kills it after the 15 s of --stop-timeout"
    plant.publish(3)
    gateway.remove()
    gateway.start()
    ready(gateway)
    plant.publish(4)
    wait_for(lambda: plant.received, "the window that began before the stop")
    assert plant.received == [("out/fours", {"total": 10, "n": 4})]
