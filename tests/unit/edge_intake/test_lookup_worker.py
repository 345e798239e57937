"""The threads that ask a store: how often, and for how long."""

from __future__ import annotations

from typing import Any

from edge.intake.lookups.base import Rows, Unanswered
from edge.intake.lookups.worker import StoreWorker
from sql.plan.asks import Request
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
    worker = StoreWorker("site", [store], 2_000, clock, lambda request, rows: None)  # type: ignore[arg-type]
    worker.ask([Request("site", ("id",), ("a",))])
    wait_for(lambda: clock.monotonic_ms() >= 1_900 and len(store.given_ms) == 7, what="the last try")
    worker.stop()
    wait_for(lambda: store.is_closed, what="the end of the thread")
    # Pauses of 50, 100, 200, 400 and 800 ms, then what is left but for the time of the last try.
    assert store.given_ms == [2_000, 1_950, 1_850, 1_650, 1_250, 450, 100]
    assert worker.health.error == "HTTP 500"
