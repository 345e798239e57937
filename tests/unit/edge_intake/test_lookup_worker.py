"""The threads that ask a store: how often, and for how long."""

from __future__ import annotations

from typing import Any

import pytest

from edge.intake.lookups.base import KeyRefused, LookupSettings, Refused, Rows, Unanswered
from edge.intake.lookups.worker import StoreWorker
from sql.plan.lookup_plan import Refusal, Request
from tests.support.waiting import wait_for
from tests.unit.sinks.support import LeapingClock


class Closed:
    """A store that answers nothing; `given_ms` lists the time limits of its tries."""

    def __init__(self) -> None:
        self.given_ms: list[int] = []
        self.is_closed = False

    def find(self, columns: tuple[str, ...], key: tuple[Any, ...], timeout_ms: int) -> Rows:
        self.given_ms.append(timeout_ms)
        raise Unanswered("HTTP 500" if timeout_ms >= 100 else "timed out")

    def close(self) -> None:
        self.is_closed = True


def test_the_last_try_has_time_to_say_why_there_is_no_answer() -> None:
    store, clock = Closed(), LeapingClock()
    settings = LookupSettings.model_validate({"timeoutMs": 2_000})
    worker = StoreWorker("site", [store], settings, clock, lambda request, rows: None)  # type: ignore[arg-type]
    worker.ask([Request("site", ("id",), ("a",))])
    wait_for(lambda: clock.monotonic_ms() >= 1_900 and len(store.given_ms) == 7, what="the last try")
    worker.stop()
    wait_for(lambda: store.is_closed, what="the end of the thread")
    # Pauses of 50, 100, 200, 400 and 800 ms, then what is left but for the time of the last try.
    assert store.given_ms == [2_000, 1_950, 1_850, 1_650, 1_250, 450, 100]
    assert worker.health.error == "HTTP 500"


class Picky:
    """A store that refuses everything while it is `shut`, and the key `bad` always. It lists the keys."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.is_shut = True

    def find(self, columns: tuple[str, ...], key: tuple[Any, ...], timeout_ms: int) -> Rows:
        self.keys.append(key[0])
        if self.is_shut:
            raise Refused("no such table")
        if key[0] == "bad":
            raise KeyRefused("no JSON")
        return [{"id": key[0]}]

    def close(self) -> None:
        """Nothing is open."""


def test_a_store_that_refuses_is_asked_again_once_in_refusal_ms(caplog: pytest.LogCaptureFixture) -> None:
    store, clock = Picky(), LeapingClock()
    answers: list[Any] = []
    settings = LookupSettings.model_validate({"refusalMs": 5_000})
    worker = StoreWorker("site", [store], settings, clock, lambda _, answer: answers.append(answer))  # type: ignore[arg-type]

    def ask(at_ms: int, *keys: str) -> list[Any]:
        clock.time_ms = at_ms
        answers.clear()
        worker.ask([Request("site", ("id",), (key,)) for key in keys])
        wait_for(lambda: len(answers) == len(keys), what="the answers")
        return list(answers)

    no_table, no_json = Refusal("no such table"), Refusal("no JSON")
    assert ask(0, "a", "b", "c") == [no_table] * 3
    assert ask(4_999, "d") == [no_table]
    assert ask(5_000, "e", "f") == [no_table] * 2
    assert store.keys == ["a", "e"]
    assert worker.health.error == "no such table"
    store.is_shut = False
    assert ask(9_999, "g") == [no_table]
    assert ask(10_000, "h", "i") == [[{"id": "h"}], [{"id": "i"}]]
    assert worker.health.error is None
    # A key that is refused holds up no other one.
    store.keys.clear()
    assert ask(10_001, "bad", "j", "bad", "k") == [no_json, [{"id": "j"}], no_json, [{"id": "k"}]]
    assert store.keys == ["bad", "j", "k"]
    assert worker.health.error == "no JSON"
    worker.stop()
    warnings = [record.__dict__ for record in caplog.records if record.message == "lookup.refused"]
    assert [warning["error"] for warning in warnings] == ["no such table", "no JSON"]
