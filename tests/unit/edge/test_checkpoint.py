"""Checkpoints: nothing is acknowledged before its effect is stored, and storing never takes over."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest

from edge.checkpoint.checkpoints import FAILURE_PAUSE_MS, Checkpoints
from edge.clock import SimulatedClock
from edge.config import CheckpointConfig


class Store:
    """Keeps what was committed, in the order of events; may be slow or refuse."""

    def __init__(self, clock: SimulatedClock) -> None:
        self.clock = clock
        self.stored: dict[str, bytes] = {}
        self.commits: list[dict[str, bytes | None]] = []
        self.cost_ms = 0
        self.is_full = False

    def load_state(self) -> Mapping[str, bytes]:
        return self.stored

    def commit_state(self, changes: Mapping[str, bytes | None]) -> None:
        self.clock.move(self.cost_ms)
        if self.is_full:
            raise OSError(28, "No space left on device")
        self.commits.append(dict(changes))
        for key, data in changes.items():
            if data is None:
                self.stored.pop(key, None)
            else:
                self.stored[key] = data


class World:
    def __init__(self, **config: int) -> None:
        self.clock = SimulatedClock()
        self.store = Store(self.clock)
        self.state: dict[str, Any] = {}
        self.acknowledged: list[Any] = []
        self.checkpoints = Checkpoints(self.store, self.clock, CheckpointConfig(**config), lambda: self.state)

    def receive(self, *tokens: int) -> None:
        self.checkpoints.received(self.acknowledged.extend, tokens, len(tokens))


def test_messages_are_acknowledged_after_the_commit_that_holds_them() -> None:
    world = World()
    world.state["rule:a"] = {"n": 1}
    world.receive(1, 2)
    assert (world.checkpoints.due_in_ms(), world.acknowledged, world.checkpoints.unacknowledged) == (0, [], 2)
    assert world.checkpoints.make()
    assert world.store.commits == [{"rule:a": b'{"n":1}'}]
    assert (world.acknowledged, world.checkpoints.unacknowledged) == ([1, 2], 0)
    assert world.checkpoints.due_in_ms() is None


def test_nothing_is_acknowledged_when_the_disk_is_full_and_it_is_tried_again() -> None:
    world = World()
    world.store.is_full = True
    world.receive(1)
    assert not world.checkpoints.make()
    assert world.acknowledged == []
    assert "No space left" in str(world.checkpoints.problem)
    assert world.checkpoints.due_in_ms() == FAILURE_PAUSE_MS
    world.store.is_full = False
    assert world.checkpoints.make()
    assert (world.acknowledged, world.checkpoints.problem) == ([1], None)


def test_only_what_changed_is_written_and_what_went_is_removed() -> None:
    world = World()
    world.state = {"rule:a": 1, "rule:b": 1}
    world.receive(1)
    world.checkpoints.make()
    world.state = {"rule:a": 2}
    world.checkpoints.forget("rule:b")
    world.checkpoints.make()
    assert world.store.commits[1] == {"rule:a": b"2", "rule:b": None}
    world.checkpoints.changed()
    world.checkpoints.make()
    assert world.store.commits[2] == {}


def test_checkpoints_take_at_most_their_share_of_the_time() -> None:
    """A state that takes 200 ms to store, at ten percent: the next one 1800 ms after it."""
    world = World(interval_ms=50, share_percent=10)
    world.store.cost_ms = 200
    world.receive(1)
    world.checkpoints.make()
    world.receive(2)
    assert world.checkpoints.due_in_ms() == 1_800
    world.store.cost_ms = 0
    world.checkpoints.make()
    world.receive(3)
    assert world.checkpoints.due_in_ms() == 50


def test_without_waiting_messages_there_is_no_hurry() -> None:
    world = World(idle_interval_ms=5_000)
    world.checkpoints.changed()
    assert world.checkpoints.due_in_ms() == 5_000
    world.clock.move(3_000)
    assert world.checkpoints.due_in_ms() == 2_000
    world.receive(1)
    assert world.checkpoints.due_in_ms() == 0


def test_state_survives_with_every_value_json_has_and_three_it_has_not() -> None:
    world = World()
    world.state["rule:a"] = {"nan": math.nan, "big": 10**40, "raw": b"\x00\xff", "text": "é\ud800", "none": None}
    world.receive(1)
    world.checkpoints.make()
    again = Checkpoints(world.store, world.clock, CheckpointConfig(), dict).load()["rule:a"]
    assert math.isnan(again.pop("nan"))
    assert again == {"big": 10**40, "raw": b"\x00\xff", "text": "é\ud800", "none": None}


def test_state_that_cannot_be_read_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.store.stored = {"rule:a": b"{", "rule:b": b"1"}
    assert world.checkpoints.load() == {"rule:b": 1}
    assert caplog.messages == ["checkpoint.unreadable"]
