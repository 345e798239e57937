"""A small plant of fifty machines that publish by MQTT, as machines do: some silent, some
late, some sending rubbish.

    topic    plant/<device>/temperature
    payload  {"dev": "pump-07", "temp": 61.2, "ts": 1767225600000, "status": "ok"}

This is what the streams of `rules/examples` read. The messages of a run depend on the seed alone, so a demo
can be repeated. `ts` is relative to the start that is passed in.

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
from typing import NamedTuple

from edge.clock import Clock, SystemClock
from sql.record import Record

DEVICES = 50
KINDS = ("pump", "fan", "press", "oven", "mixer")
PERIOD_MS = 1_000
"""Every machine reports once in this time."""

SILENCE_MS = 10_000
HOT_FROM_MS, HOT_FOR_MS, HOT_DEGREES = 5_000, 20_000, 45.0
"""An overheating machine gets this much hotter during half of the time, and cools down during the other."""

LATE_SHARE, LATE_MS_MAX = 0.3, 6_000
FAULT_DEGREES = 80.0
"""Above this temperature a machine reports a fault."""

CONFIRM_S = 5.0
"""The time limit for the confirmation of the last message."""

RUBBISH = (
    b"",
    b"{",
    b"null",
    b"[1, 2",
    b'{"temp": NaN}',
    b"\xff\xfe\x00binary",
    b'"just a text"',
    b'{"dev": "pump-0',
    b'{"dev": "press-17", "temp": "hot"}',
)
"""Payloads that no stream can take; each becomes a dead letter."""


class PlantMessage(NamedTuple):
    """One message, `at_ms` after the start."""

    at_ms: int
    topic: str
    payload: bytes


class Machine(Record):
    """One device and its habits."""

    number: int
    silent_from_ms: int | None
    """The time from which it sends nothing for `SILENCE_MS`."""
    late_share: float
    """The share of its messages that are held up on the way."""
    rubbish_share: float
    """The share of its messages that are rubbish."""
    overheats: bool

    @property
    def name(self) -> str:
        return f"{KINDS[self.number % len(KINDS)]}-{self.number:02d}"

    @property
    def topic(self) -> str:
        return f"plant/{self.name}/temperature"


def machines(devices: int = DEVICES) -> list[Machine]:
    """The plant: every 10th machine falls silent, every 7th is late, every 12th sends rubbish, every 15th
    overheats."""
    return [
        Machine(
            number,
            silent_from_ms=8_000 + number * 100 if number % 10 == 3 else None,
            late_share=LATE_SHARE if number % 7 == 2 else 0.0,
            rubbish_share=0.25 if number % 12 == 5 else 0.0,
            overheats=number % 15 == 7,
        )
        for number in range(devices)
    ]


def messages(seconds: int, start_ms: int, seed: int = 1) -> Iterator[PlantMessage]:
    """All messages of a run in order of their sending; `start_ms` is the wall clock time of offset 0."""
    dice = random.Random(seed)
    plant = machines()
    offsets = {machine.number: dice.randrange(PERIOD_MS) for machine in plant}
    order = sorted(plant, key=lambda machine: offsets[machine.number])
    for second in range(seconds):
        for machine in order:
            at_ms = second * PERIOD_MS + offsets[machine.number]
            if machine.silent_from_ms is not None and 0 <= at_ms - machine.silent_from_ms < SILENCE_MS:
                continue
            if dice.random() < machine.rubbish_share:
                yield PlantMessage(at_ms, machine.topic, dice.choice(RUBBISH))
            else:
                yield PlantMessage(at_ms, machine.topic, reading(machine, at_ms, start_ms, dice))


def reading(machine: Machine, at_ms: int, start_ms: int, dice: random.Random) -> bytes:
    """The message of a machine's measurement: a slow wave with noise, and a peak where it overheats."""
    temp = 50 + 5 * math.sin(at_ms / 20_000 + machine.number) + dice.gauss(0, 0.4)
    if machine.overheats:
        progress = (at_ms - HOT_FROM_MS) / HOT_FOR_MS
        temp += HOT_DEGREES * max(0.0, 1 - abs(2 * progress - 1))
    held_up_ms = dice.randrange(LATE_MS_MAX) if dice.random() < machine.late_share else 0
    values = {
        "dev": machine.name,
        "temp": round(temp, 2),
        "ts": start_ms + at_ms - held_up_ms,
        "status": "fault" if temp > FAULT_DEGREES else "ok",
    }
    return json.dumps(values, separators=(",", ":")).encode()


def publish(broker: str, seconds: int, seed: int, clock: Clock, stop: threading.Event) -> int:
    """Send a run's messages to a broker at their times; returns how many. Raises OSError if
    it cannot be reached."""
    from edge.config.mqtt_options import MqttOptions
    from edge.intake.sources.mqtt.client import connect, make_client

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
    parser = argparse.ArgumentParser(
        prog="python -m edge.demo.plant", description="A plant of fifty machines."
    )
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
