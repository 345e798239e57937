"""The one queue between the threads of the sources and the gateway loop.

Sources put batches and never wait. The loop takes them over in each turn, and pauses the sources where too
much waits. Other
threads (HTTP, rule watcher, signals) reach the loop through `call`, which runs a function in the loop between
two batches and returns its result.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from itertools import repeat
from typing import Generic, TypeVar

from edge.base.poller import Poller

Item = TypeVar("Item")
Result = TypeVar("Result")


class Intake(Generic[Item]):
    """Batches and calls for the gateway loop; `put`, `call` and `wake` may be used from any thread."""

    def __init__(self, poller: Poller | None = None) -> None:
        """`poller` is where the loop sleeps."""
        self.poller = poller or Poller()
        self.items: deque[Item] = deque()
        self.calls: list[Callable[[], None]] = []
        """What waits; `take_items` and `take_calls` take it."""
        self._closed = False
        self._lock = threading.Lock()

    def put(self, item: Item) -> None:
        """Add a batch. Always accepted: what a source has already read must go somewhere."""
        self.items.append(item)
        self.poller.wake()

    def call(self, function: Callable[[], Result], timeout_s: float) -> Result:
        """Run `function` in the loop and return its result. Raises TimeoutError, or
        what the function raised."""
        future: Future[Result] = Future()

        def run() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(function())
                except BaseException as error:  # noqa: BLE001 - handed to the caller, whatever it is
                    future.set_exception(error)

        with self._lock:
            if self._closed:
                raise TimeoutError
            self.calls.append(run)
        self.poller.wake()
        try:
            return future.result(timeout_s)
        except TimeoutError:
            future.cancel()
            raise

    def wake(self) -> None:
        """Make the loop turn, without giving it anything."""
        self.poller.wake()

    def take_items(self) -> list[Item]:
        """All waiting items at once: batches are as large as the traffic makes them, never
        waited for."""
        items = self.items
        return [*map(deque.popleft, repeat(items, len(items)))]

    def take_calls(self) -> list[Callable[[], None]]:
        """The functions that other threads have handed over for the loop to call."""
        with self._lock:
            calls, self.calls = self.calls, []
            return calls

    def close(self) -> None:
        """Refuse further calls: the loop has ended."""
        with self._lock:
            self._closed = True
