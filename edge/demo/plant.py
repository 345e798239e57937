"""A small plant of fifty machines that publish by MQTT, as machines do: some silent, some late, some sending rubbish.

    topic    plant/<line>/<device>/telemetry
    payload  {"device": "pump-07", "line": "a", "ts": 1767225600000, "temp": 61.2, "vibration": 2.31, "pressure": 4.02,
              "rpm": 1480, "state": "running", "good": 3}

The messages of a run depend on the seed alone, so a demo can be repeated. `ts` is relative to the start that is
passed in.

Run it by itself: `python -m edge.demo.plant --broker mqtt://127.0.0.1:1883 --seconds 30`.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from edge.clock import Clock, SystemClock

DEVICES = 50
LINES = "abcde"
PERIOD_MS = 1_000
"""Every machine reports once in this time."""

CONFIRM_S = 5.0
"""How long the last message may take to be confirmed."""

RUBBISH = (
    b"",
    b"{",
    b"null",
    b"[1, 2",
    b'{"temp": NaN}',
    b"\xff\xfe\x00binary",
    b'"just a text"',
    b'{"device": "pump-0',
)
"""Payloads that are no JSON object; each becomes a dead letter."""


class Message(NamedTuple):
    """One message, `at_ms` after the start."""

    at_ms: int
    topic: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class Machine:
    """One device and its habits."""

    number: int
    silent_from_ms: int | None
    """Says nothing from here on for ten seconds: a session ends, an alert is due."""
    late_ms: int
    """Its messages arrive this much after they were measured."""
    rubbish_share: float
    """How many of its messages are rubbish."""
    overheats: bool

    @property
    def name(self) -> str:
        return f"{('pump', 'fan', 'press', 'oven', 'mixer')[self.number % 5]}-{self.number:02d}"

    @property
    def line(self) -> str:
        return LINES[self.number * len(LINES) // DEVICES]

    @property
    def topic(self) -> str:
        return f"plant/{self.line}/{self.name}/telemetry"


def machines(devices: int = DEVICES) -> list[Machine]:
    """The plant: every 10th machine falls silent, every 7th is late, every 12th sends rubbish, every 9th overheats."""
    return [
        Machine(
            number,
            silent_from_ms=8_000 + number * 100 if number % 10 == 3 else None,
            late_ms=3_000 if number % 7 == 2 else 0,
            rubbish_share=0.25 if number % 12 == 5 else 0.0,
            overheats=number % 9 == 4,
        )
        for number in range(devices)
    ]


def messages(seconds: int, start_ms: int, seed: int = 1, devices: int = DEVICES) -> Iterator[Message]:
    """All messages of a run in order of their sending; `start_ms` is the wall clock time of offset 0."""
    dice = random.Random(seed)
    plant = machines(devices)
    offsets = {machine.number: dice.randrange(PERIOD_MS) for machine in plant}
    order = sorted(plant, key=lambda machine: offsets[machine.number])
    for second in range(seconds):
        for machine in order:
            at_ms = second * PERIOD_MS + offsets[machine.number]
            if machine.silent_from_ms is not None and 0 <= at_ms - machine.silent_from_ms < 10_000:
                continue
            if dice.random() < machine.rubbish_share:
                yield Message(at_ms, machine.topic, dice.choice(RUBBISH))
            else:
                yield Message(at_ms, machine.topic, reading(machine, at_ms, start_ms, dice))


def reading(machine: Machine, at_ms: int, start_ms: int, dice: random.Random) -> bytes:
    """What a machine measures: slow waves with noise; an overheating one climbs half a degree a second."""
    seconds = at_ms / 1000
    temp = 55 + 5 * math.sin(seconds / 20 + machine.number) + dice.gauss(0, 0.4)
    if machine.overheats:
        temp += min(40.0, seconds / 2 + 15)
    running = int(seconds / 12 + machine.number) % 4 != 0
    return json.dumps(
        {
            "device": machine.name,
            "line": machine.line,
            "ts": start_ms + at_ms - machine.late_ms,
            "temp": round(temp, 2),
            "vibration": round(abs(dice.gauss(2.0 if running else 0.2, 0.3)), 3),
            "pressure": round(4 + dice.gauss(0, 0.05), 3),
            "rpm": (1_480 + dice.randrange(-15, 16)) if running else 0,
            "state": "running" if running else "idle",
            "good": dice.randrange(5) if running else 0,
        },
        separators=(",", ":"),
    ).encode()


def publish(broker: str, seconds: int, seed: int, clock: Clock, stop: threading.Event) -> int:
    """Send a run's messages to a broker at their times; returns how many. Raises OSError if it cannot be reached."""
    from edge.sources.mqtt_client import MqttOptions, connect, make_client

    options = MqttOptions(broker, "penstock-plant", version="3.1.1", session_expiry_s=0, status_prefix=None)
    client = make_client(options, "3.1.1")
    connect(client, options, "3.1.1")
    client.loop_start()
    started_ms, sent = clock.monotonic_ms(), 0
    try:
        for message in messages(seconds, clock.now_ms(), seed):
            wait_ms = started_ms + message.at_ms - clock.monotonic_ms()
            if wait_ms > 0 and stop.wait(wait_ms / 1000):
                break
            last = client.publish(message.topic, message.payload, qos=1)
            sent += 1
        if sent:
            last.wait_for_publish(CONFIRM_S)
    finally:
        client.disconnect()
        client.loop_stop()
    return sent


def main() -> int:
    """The command line of the plant."""
    parser = argparse.ArgumentParser(prog="python -m edge.demo.plant", description="A plant of fifty machines.")
    parser.add_argument("--broker", default="mqtt://127.0.0.1:1883", metavar="URL")
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    try:
        sent = publish(arguments.broker, arguments.seconds, arguments.seed, SystemClock(), threading.Event())
    except (OSError, ValueError) as error:
        print(f"plant: {arguments.broker}: {error}", file=sys.stderr)
        return 1
    print(f"plant: {sent} messages sent")
    return 0


if __name__ == "__main__":
    sys.exit(main())
