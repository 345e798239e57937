"""A gateway with streams of two brokers: nothing of either is lost or counts twice,
and each has its own health."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.integration.daemon.support import Process, bucket_rows, publisher
from tests.integration.daemon.test_redelivery import Proxy
from tests.support.brokers import Mosquitto
from tests.support.waiting import wait_for

pytestmark = pytest.mark.broker

RULES = """
streams:
  near: {datasource: plant/#}
  far: {datasource: plant/#, confKey: line2}
rules:
  - {id: one, sql: SELECT n FROM near, actions: [{cloud: {keys: [n], window: 60000}}]}
  - {id: two, sql: SELECT n FROM far, actions: [{cloud: {keys: [n], window: 60000}}]}
  - {id: out, sql: SELECT n FROM near, actions: [{mqtt: {topic: seen, connectionSelector: line2}}]}
"""


def uploaded(folder: Path) -> Counter[tuple[str, int]]:
    return Counter((row["rule"], row["keys"]["n"]) for row in bucket_rows(folder / "bucket"))


def test_a_kill_between_two_brokers(broker: Mosquitto, tmp_path: Path) -> None:
    """The far broker sees no acknowledgement of what it sent; the gateway dies;
    both send on while it is away."""
    far = Mosquitto(tmp_path / "far").start()
    proxy = Proxy(far.port)
    config = tmp_path / "gateway.yaml"
    config.write_text(
        f"connections: {{line2: {{server: 'mqtt://127.0.0.1:{proxy.port}', clientid: action}}}}\n", "utf-8"
    )
    upload = ("--upload", str(tmp_path / "bucket"), "--upload-interval", "100ms")
    gateway = Process(tmp_path, broker.url, (*upload, "--config", str(config)))
    gateway.write_rule("r.yaml", RULES)
    try:
        with publisher(broker.port) as here, publisher(far.port) as there:
            gateway.start()
            gateway.wait_ready()
            assert {"mqtt", "mqtt.line2"} == gateway.status()["sources"].keys()
            proxy.muted = True
            for number in range(10):
                here.send("plant/x", {"n": number})
                there.send("plant/x", {"n": number + 100})
            wait_for(lambda: uploaded(tmp_path).total() == 20, "rows of both brokers")
            gateway.kill()
            proxy.muted = False
            proxy.cut()
            here.send("plant/x", {"n": 10})
            there.send("plant/x", {"n": 110})
            gateway.start()
            wait_for(lambda: uploaded(tmp_path).total() >= 22, "what came meanwhile")
            status = gateway.status()
            assert status["intake"]["redelivered"] == 10
            wait_for(lambda: gateway.status()["intake"]["unacknowledged"] == 0, what="acknowledgements")
            near, beyond = (("one", number) for number in range(11)), (("two", n) for n in range(100, 111))
            assert uploaded(tmp_path) == Counter([*near, *beyond])
            # One broker goes away: its connection alone is not ready, the other stream goes on.
            far.stop()
            wait_for(
                lambda: any("mqtt.line2" in why for why in gateway.status()["ready"]), what="its absence"
            )
            here.send("plant/x", {"n": 11})
            wait_for(lambda: uploaded(tmp_path)["one", 11] == 1, what="the other stream")
            assert not any(why.startswith("mqtt:") for why in gateway.status()["ready"])
            # No stream reads it any more: the broker is told so, and keeps nothing.
            far.start()
            gateway.write_rule("r.yaml", RULES.replace("confKey: line2", "type: memory"))
            wait_for(lambda: gateway.status()["sources"]["mqtt.line2"]["subscriptions"] == 0, what="the end")
            assert gateway.stop() == 0
    finally:
        gateway.kill()
        proxy.close()
        far.stop()
