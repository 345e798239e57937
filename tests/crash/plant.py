"""A publisher that knows which of its messages the broker has confirmed."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

CONFIRMED_S_MAX = 300
"""A broker that is stopped and started on a busy machine takes long."""


def until(condition: Callable[[], object], timeout_s: float, what: str) -> None:
    """Wait for something that is costly to ask for. Raises TimeoutError."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} did not come within {timeout_s} s")
        time.sleep(0.5)


class Plant:
    """Publishes numbered messages, and knows which of them the broker has confirmed.

    `rate`: so many a second on average; without it, as fast as the broker confirms them. Each comes on all
    `topics`.
    """

    def __init__(
        self, port: int, seed: int, pad: str = "", rate: float = 0.0, topics: Sequence[str] = ("plant/x",)
    ) -> None:
        from paho.mqtt.client import Client
        from paho.mqtt.enums import CallbackAPIVersion

        self.sent = 0
        self._published = self._confirmed = 0
        self._heard = threading.Condition()
        self._pad = pad
        self._rate = rate
        self._topics = topics
        self._stop = threading.Event()
        self._dice = random.Random(seed)
        self._client = Client(
            CallbackAPIVersion.VERSION2, client_id=f"crash-plant-{topics[0]}", clean_session=False
        )
        self._client.max_inflight_messages_set(200)
        self._client.reconnect_delay_set(1, 1)
        self._client.on_publish = self._on_confirmed
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            count = self._dice.randrange(1, 200)
            for _ in range(count):
                self._publish_next()
            self._wait_for_confirmations()
            pause_s = count / self._rate if self._rate else 0.02
            self._stop.wait(self._dice.choice((0.0, 0.5, 2.5)) * pause_s)

    def _publish_next(self) -> None:
        number, instant = self.sent, 1_800_000_000_000 + self.sent * 3
        self._publish(f'{{"n": {number}, "g": {number % 7}, "ts": {instant}, "pad": "{self._pad}"}}')
        self.sent += 1

    def _publish(self, payload: str) -> None:
        """Publish; while the broker is away the client keeps the message and sends it later."""
        for topic in self._topics:
            self._published += 1
            self._client.publish(topic, payload, 1)

    def _on_confirmed(self, *_: Any) -> None:
        with self._heard:
            self._confirmed += 1
            self._heard.notify()

    def _wait_for_confirmations(self) -> None:
        """Wait until the broker has everything. Raises AssertionError."""
        with self._heard:
            assert self._heard.wait_for(lambda: self._confirmed >= self._published, CONFIRMED_S_MAX)

    def finish(self) -> int:
        """Stop, with a whole number of tens; returns how many messages there are."""
        self._stop.set()
        self._thread.join(CONFIRMED_S_MAX)
        while self.sent % 10:
            self._publish_next()
        self._wait_for_confirmations()
        return self.sent

    def send(self, payload: str) -> None:
        """Publish one more message and wait until the broker has it."""
        self._publish(payload)
        self._wait_for_confirmations()

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()
