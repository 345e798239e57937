"""A publisher that knows which of its messages the broker has confirmed."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any


def until(condition: Callable[[], object], timeout_s: float, what: str) -> None:
    """Wait for something that is costly to ask for. Raises TimeoutError."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} did not come within {timeout_s} s")
        time.sleep(0.5)


class Plant:
    """Publishes numbered messages without a pause, and knows which of them the broker has confirmed."""

    def __init__(self, port: int, seed: int, pad: str = "") -> None:
        from paho.mqtt.client import Client
        from paho.mqtt.enums import CallbackAPIVersion

        self.sent = 0
        self._pad = pad
        self._stop = threading.Event()
        self._dice = random.Random(seed)
        self._client = Client(CallbackAPIVersion.VERSION2, client_id="crash-plant", clean_session=False)
        self._client.max_inflight_messages_set(200)
        self._client.reconnect_delay_set(1, 1)
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            waiting = [self._publish(self.sent + offset) for offset in range(self._dice.randrange(1, 200))]
            self.sent += len(waiting)
            for sent in waiting:
                sent.wait_for_publish(60)
            self._stop.wait(self._dice.choice((0.0, 0.01, 0.05)))

    def _publish(self, number: int) -> Any:
        instant = 1_800_000_000_000 + number * 3
        payload = f'{{"n": {number}, "g": {number % 7}, "ts": {instant}, "pad": "{self._pad}"}}'
        return self._client.publish("plant/x", payload, 1)

    def finish(self) -> int:
        """Stop, with a whole number of tens; returns how many messages there are."""
        self._stop.set()
        self._thread.join(120)
        while self.sent % 10:
            self._publish(self.sent).wait_for_publish(60)
            self.sent += 1
        return self.sent

    def send(self, payload: str) -> None:
        """Publish one more message and wait until the broker has it."""
        self._client.publish("plant/x", payload, 1).wait_for_publish(60)

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()
