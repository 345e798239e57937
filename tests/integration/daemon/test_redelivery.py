"""Acknowledgements that never arrive: the broker sends again, and the effect stays single."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.integration.daemon.support import Process, bucket_rows, publisher
from tests.integration.daemon.test_kill import EACH
from tests.support.brokers import Mosquitto
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.broker, pytest.mark.slow]


class Proxy:
    """Stands between gateway and broker; while `muted`, what the gateway says does not reach the broker."""

    def __init__(self, port: int) -> None:
        self.muted = False
        self.port = 0
        self._broker_port = port
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    broker = socket.create_connection(("127.0.0.1", self._broker_port))
                except OSError:  # the broker is away
                    client.close()
                    continue
                self._sockets += [client, broker]
                threading.Thread(target=self._forward, args=(client, broker, True), daemon=True).start()
                threading.Thread(target=self._forward, args=(broker, client, False), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket, may_mute: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                if not (may_mute and self.muted):
                    target.sendall(data)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        """Break all connections."""
        for end in self._sockets:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        self._sockets.clear()

    def close(self) -> None:
        self._listener.close()
        self.cut()


@contextmanager
def proxied(broker: Mosquitto, folder: Path) -> Iterator[tuple[Proxy, Process]]:
    """A gateway that reaches the broker through a proxy, ready."""
    proxy = Proxy(broker.port)
    arguments = ("--upload", str(folder / "bucket"), "--upload-interval", "100ms")
    unbounded = {"PENSTOCK__MQTT__RECEIVEMAX": "65535"}
    gateway = Process(folder, f"mqtt://127.0.0.1:{proxy.port}", arguments, unbounded)
    gateway.write_rule("rule.yaml", EACH)
    try:
        gateway.start()
        gateway.wait_ready()
        yield proxy, gateway
    finally:
        gateway.kill()
        proxy.close()


def uploaded(folder: Path) -> Counter[int]:
    return Counter(row["keys"]["n"] for row in bucket_rows(folder / "bucket"))


@pytest.mark.parametrize("dies", [True, False], ids=["killed", "disconnected"])
def test_what_is_sent_again_counts_once(broker: Mosquitto, tmp_path: Path, dies: bool) -> None:
    with proxied(broker, tmp_path) as (proxy, gateway), publisher(broker.port) as plant:
        proxy.muted = True
        for number in range(10):
            plant.send("plant/x", {"n": number})
        wait_for(
            lambda: sum(uploaded(tmp_path).values()) == 10, what="the upload, without any acknowledgement"
        )
        if dies:
            gateway.kill()
        proxy.muted = False
        proxy.cut()
        if dies:
            gateway.start()
        wait_for(lambda: gateway.status()["intake"]["redelivered"] == 10, what="the broker sending again")
        plant.send("plant/x", {"n": 10})
        wait_for(lambda: uploaded(tmp_path)[10], what="a new message")
        assert uploaded(tmp_path) == Counter(range(11))
        wait_for(lambda: gateway.status()["intake"]["unacknowledged"] == 0, what="the acknowledgements")
        assert gateway.stop() == 0


@pytest.mark.parametrize("version", ["3.1.1", "5"])
@pytest.mark.parametrize("ends", ["kill", "stop"])
def test_a_retained_message_counts_once_over_restarts(
    broker: Mosquitto, tmp_path: Path, version: str, ends: str
) -> None:
    arguments = ("--upload", str(tmp_path / "bucket"), "--upload-interval", "100ms")
    gateway = Process(tmp_path, broker.url, arguments, {"PENSTOCK__MQTT__PROTOCOLVERSION": version})
    gateway.write_rule("rule.yaml", EACH)
    with publisher(broker.port) as plant:
        plant.send("plant/kept", {"n": 0}, retain=True)
        try:
            for restart in range(1, 4):
                gateway.start()
                gateway.wait_ready()
                plant.send("plant/x", {"n": restart})
                wait_for(lambda: uploaded(tmp_path)[restart], what="the new message")  # noqa: B023
                if ends == "kill":
                    gateway.kill()
                else:
                    gateway.stop()
        finally:
            gateway.kill()
        plant.send("plant/kept", b"", retain=True)
    assert uploaded(tmp_path) == Counter(range(4))


def test_three_thousand_in_flight_at_a_kill_count_once(tmp_path: Path) -> None:
    """They are taken in, and the broker sees no acknowledgement of them."""
    wide = Mosquitto(tmp_path / "broker", lines=("max_inflight_messages 0", "max_queued_messages 0"))
    wide.start()
    count = 3_000
    try:
        with proxied(wide, tmp_path) as (proxy, gateway), publisher(wide.port) as plant:
            proxy.muted = True
            for number in range(count):
                plant.send("plant/x", {"n": number}, wait=number == count - 1)
            wait_for(
                lambda: sum(uploaded(tmp_path).values()) == count,
                "the upload, without an acknowledgement",
            )
            gateway.kill()
            proxy.muted = False
            proxy.cut()
            gateway.start()
            wait_for(lambda: gateway.status()["intake"]["redelivered"] == count, "the broker sending again")
            plant.send("plant/x", {"n": count})
            wait_for(lambda: uploaded(tmp_path)[count], what="a new message")
            assert uploaded(tmp_path) == Counter(range(count + 1))
    finally:
        wide.stop()
