"""Results that deliveries have refused: their order, their count, and rules that are held back meanwhile."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from edge.delivery.assigned import AssignedAction, rows_of
from edge.delivery.dead_letters import DeadLetters
from edge.delivery.outbox import Outbox
from edge.journal.record import Receipts
from sinks import Stats
from sql import Emission

RULES = ("a", "b")


class Narrow:
    """A delivery that takes as many results as it has room for."""

    name = "narrow"

    def __init__(self) -> None:
        self.room = 0
        self.taken: list[Emission] = []

    def submit(self, emission: Emission, token: object = None) -> bool:
        if self.room:
            self.room -= 1
            self.taken.append(emission)
            return True
        return False

    def begin_close(self, deadline_ms: int) -> None: ...

    def close(self, deadline_ms: int) -> int:
        self.room = 0
        return 0

    def stats(self) -> Stats:
        return Stats("ok", len(self.taken), 0, 0, 0, 0, 0, "")


class Scene:
    """Two rules with two narrow actions each; every result has a number, and one or two rows."""

    def __init__(self, folder: Path, rows_max: int = 1_000) -> None:
        self.letters = DeadLetters(folder / "dead")
        self.outbox = Outbox(self.letters, rows_max)
        self.narrow = {rule: [Narrow(), Narrow()] for rule in RULES}
        for rule, takers in self.narrow.items():
            self.outbox.assigned.assign(
                rule, [AssignedAction("actions", place, {}, taker) for place, taker in enumerate(takers)]
            )
        self.given: dict[str, list[Emission]] = {rule: [] for rule in RULES}

    def give(self, rule: str, rows: int = 1) -> None:
        emission = Emission(rule, 1, "rows", [{"n": len(self.given[rule])}] * rows)
        self.given[rule].append(emission)
        self.outbox.hand_over([emission])

    def rows_not_taken(self, but: set[str]) -> int:
        return sum(
            rows_of(emission)
            for rule, takers in self.narrow.items()
            if rule not in but
            for taker in takers
            for emission in self.given[rule][len(taker.taken) :]
        )


@pytest.mark.parametrize("seed", range(20))
def test_what_waits_is_counted_and_taken_in_order(seed: int, tmp_path: Path) -> None:
    scene, choose, held = Scene(tmp_path), random.Random(seed), set[str]()
    for _ in range(200):
        rule = choose.choice(RULES)
        match choose.choice(("give", "give", "room", "hold")):
            case "give":
                scene.give(rule, choose.choice((1, 2)))
            case "room":
                choose.choice(scene.narrow[rule]).room += choose.randrange(4)
                scene.outbox.reconcile()
            case "hold" if rule in held:
                held.discard(rule)
                scene.outbox.release(rule)
            case "hold":
                held.add(rule)
                scene.outbox.hold(rule)
        scene.outbox.reconcile()
        assert scene.outbox.rows_waiting() == scene.rows_not_taken(held)
        for name, takers in scene.narrow.items():
            assert all(taker.taken == scene.given[name][: len(taker.taken)] for taker in takers)


def test_a_rule_that_comes_back_to_a_full_sink_counts_once(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.give("a")  # both actions refuse it
    scene.outbox.hold("a")
    assert scene.outbox.rows_waiting() == 0
    scene.outbox.release("a")
    assert scene.outbox.rows_waiting() == 2


def test_results_dropped_and_those_of_a_removed_action_no_longer_count(tmp_path: Path) -> None:
    scene = Scene(tmp_path, rows_max=3)
    scene.outbox.hold("a")
    for _ in range(5):
        scene.give("a", 2)
    assert scene.outbox.dropped_held == 2 * 2 * 2  # actions, results over the bound, rows
    scene.give("b", 2)
    for action in scene.outbox.actions("b"):
        assert scene.outbox.close_action(action, 0) == 1
    assert scene.outbox.rows_waiting() == 0
    assert scene.outbox.drop_held("a") == 2 * 3
    scene.outbox.reconcile()
    assert scene.outbox.rows_waiting() == 0


def test_the_count_begins_with_what_an_earlier_run_has_left(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.outbox.is_replaying = True
    scene.give("a", 2)
    scene.outbox.hold("b")
    scene.give("b", 2)  # waits in the replay already
    scene.outbox.resume()
    assert scene.outbox.rows_waiting() == 2 * 2
    scene.outbox.release("b")
    assert scene.outbox.rows_waiting() == 2 * 2 * 2


def test_receipts_of_a_run_that_held_fewer_results_are_replayed(tmp_path: Path) -> None:
    """The bound was raised between two runs: the first had dropped a result that the replay holds."""
    scene = Scene(tmp_path)
    scene.outbox.is_replaying = True
    scene.outbox.hold("a")
    for _ in range(3):
        scene.give("a")
    scene.outbox.journaled.delivered(Receipts([("a", "actions", place, "narrow", 2) for place in (0, 1)]))
    scene.outbox.resume()
    scene.outbox.release("a")
    assert scene.outbox.rows_waiting() == 2
    for taker in scene.narrow["a"]:
        taker.room = 5
    scene.outbox.reconcile()
    assert [taker.taken for taker in scene.narrow["a"]] == [scene.given["a"][2:]] * 2


def test_results_that_wait_before_a_delivery_are_queued(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.narrow["a"][0].room = 1
    for _ in range(3):
        scene.give("a", rows=2)
    full, closed = (action.stats() for action in scene.outbox.actions("a"))
    assert (full.sent, full.queued, closed.sent, closed.queued) == (1, 2, 0, 3)
