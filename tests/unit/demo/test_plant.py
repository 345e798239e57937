"""The simulated plant: repeatable, and with every kind of trouble that the demo promises."""

from __future__ import annotations

import json
from itertools import pairwise

from edge.demo.plant import RUBBISH, SILENCE_MS, machines, messages

START_MS = 1_767_225_600_000


def test_a_run_depends_on_its_seed_alone() -> None:
    assert list(messages(5, START_MS, seed=3)) == list(messages(5, START_MS, seed=3))
    assert list(messages(5, START_MS, seed=3)) != list(messages(5, START_MS, seed=4))


def test_messages_come_in_order_of_time() -> None:
    times = [message.at_ms for message in messages(10, START_MS)]
    assert times == sorted(times)
    assert times[-1] < 10_000


def test_silent_machines_say_nothing_for_their_time() -> None:
    silent = next(machine for machine in machines() if machine.silent_from_ms is not None)
    times = [message.at_ms for message in messages(40, START_MS) if message.topic == silent.topic]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert max(gaps) >= SILENCE_MS
    assert sum(gap >= SILENCE_MS for gap in gaps) == 1


def test_the_plant_is_late_hot_and_sends_rubbish() -> None:
    sent = list(messages(28, START_MS))
    good = [(message, json.loads(message.payload)) for message in sent if message.payload not in RUBBISH]
    late_ms = [START_MS + message.at_ms - reading["ts"] for message, reading in good]
    assert max(late_ms) > 2_000, "later than the examples tolerate"
    assert min(late_ms) == 0
    assert any(0 < ms < 2_000 for ms in late_ms), "late, and still in time"
    assert any(reading["temp"] > 85 and reading["status"] == "fault" for _, reading in good)
    assert len(sent) - len(good) > 20
    assert {reading["dev"] for _, reading in good} == {machine.name for machine in machines()}
