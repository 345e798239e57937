"""Guard calls of user functions: an exception costs one row, and a call that takes too long is ended.

A thread watches the running calls. One that computes longer than the limit gets an exception at its next step
in Python; a call that hangs inside C code ends when that code returns. Processor time counts, because on a
machine with other work a quick call may last long. A call that waits, for a lock or a server, uses none: it
may last `WAITING` times the limit. A function that took too long `OVERRUNS_MAX` times is switched off until
the process starts again, so that it cannot delay the rules repeatedly.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any, NamedTuple

from sql.errors import DataError

CALL_MS_MAX = 1_000
"""The time that one call may take, unless the configuration sets another."""

OVERRUNS_MAX = 3
"""The number of calls beyond the time limit after which a function is switched off."""

LOOKS = 4
"""The number of checks per time limit; a call computes at most half the limit longer."""

STEPS = 100
"""The steps of a loop within which the interpreter raises what another thread has set."""

WAITING = 5
"""The time that a call may last, as a multiple of the limit of its processor time."""

VALUES = frozenset((type(None), bool, int, float, str, bytes, list, dict))
"""The types of values that a function may return."""


class TooLong(DataError):
    """The time limit of a call has passed."""

    def __init__(self) -> None:
        super().__init__("it took too long")


class SeenCall(NamedTuple):
    """A call as the watch has seen it: its number, the number of checks, and the processor time of its thread
    at the first one."""

    number: int
    looks: int
    since_ms: int

    def is_too_long(self, now_ms: int, limit_ms: int) -> bool:
        """True if the call must end; `now_ms` is the processor time of its thread."""
        return now_ms - self.since_ms >= limit_ms or self.looks > LOOKS * WAITING


class Watch:
    """A watch that ends calls beyond the time limit. Its thread starts with the first call."""

    def __init__(self, call_ms_max: int = CALL_MS_MAX) -> None:
        self.call_ms_max = call_ms_max
        self._numbers = count(1)
        self._running: dict[int, int] = {}
        """The number of the call that runs, by thread."""
        self._ended: set[int] = set()
        """Threads in whose call `TooLong` was raised."""
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def run(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """The function's result. Raises `TooLong`, and any exception of the function."""
        if self._thread is None:
            self._start()
        me = threading.get_ident()
        self._running[me] = next(self._numbers)
        try:
            try:
                return function(*arguments)
            finally:
                self._end(me)
        except TooLong:
            self._end(me)  # `TooLong` may interrupt the first `_end`
            raise

    def _end(self, me: int) -> None:
        with self._lock:
            self._running.pop(me, None)
            is_ended = me in self._ended
            self._ended.discard(me)
        if is_ended:
            _take_pending()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._look, name="function-watch", daemon=True)
                self._thread.start()

    def _look(self) -> None:
        never = threading.Event()
        calls: dict[int, SeenCall] = {}
        looks = 0
        while not never.wait(self.call_ms_max / LOOKS / 1000):
            looks += 1
            with self._lock:
                before, calls = calls, {}
                for thread, number in self._running.items():
                    now_ms = _processor_ms(thread, looks * self.call_ms_max // LOOKS)
                    seen = before.get(thread)
                    if seen is None or seen.number != number:
                        seen = SeenCall(number, 0, now_ms)
                    calls[thread] = seen = seen._replace(looks=seen.looks + 1)
                    if seen.is_too_long(now_ms, self.call_ms_max) and thread not in self._ended:
                        self._ended.add(thread)
                        _raise_in(thread, TooLong)


def _processor_ms(thread: int, passed_ms: int) -> int:
    """The processor time of a running thread; the time that has passed where the system has no such clock."""
    if sys.platform == "linux":
        return time.clock_gettime_ns(time.pthread_getcpuclockid(thread)) // 1_000_000
    return passed_ms


def _raise_in(thread: int, error: type[BaseException]) -> None:
    """Raise an exception in a thread at its next step."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))


def _take_pending() -> None:
    """Let a `TooLong` that was set as the call came to its end be raised here.

    The interpreter could cancel it, but would look for it at every step from then on: all code of the process
    would run a fifth slower, and a profiler would make it hang.
    """
    with suppress(TooLong):
        for _ in range(STEPS):
            pass


WATCH = Watch()
"""The watch of this process."""


class Guarded:
    """A function behind the guard: it returns a value of SQL, or raises `DataError`."""

    def __init__(
        self, name: str, function: Callable[..., Any], required: tuple[bool, ...] = (), watch: Watch = WATCH
    ):
        """`required`: for each argument whether NULL there gives NULL without a call."""
        self.name = name
        self.function = function
        self.required = required
        self.watch = watch
        self.overruns = 0

    def __call__(self, *arguments: Any) -> Any:
        # Optional arguments may be missing, and further ones may follow.
        if any(value is None and needed for value, needed in zip(arguments, self.required)):  # noqa: B905
            return None
        if self.overruns >= OVERRUNS_MAX:
            raise DataError(
                f"{self.name}() is switched off: {OVERRUNS_MAX} calls took longer than {self._limit}"
            )
        try:
            result = self.watch.run(self.function, arguments)
        except TooLong:
            self.overruns += 1
            raise DataError(f"{self.name}() took longer than {self._limit}") from None
        except DataError:
            raise
        except Exception as error:  # any exception costs this row only
            raise DataError(f"{self.name}() raised {type(error).__name__}: {error}") from error
        if result.__class__ not in VALUES:
            raise DataError(f"{self.name}() returned {type(result).__name__}, which is no value of SQL")
        return result

    @property
    def _limit(self) -> str:
        return f"{self.watch.call_ms_max} ms"


def guard_function(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The implementation of a function that a plug-in registered, behind the guard."""
    return Guarded(name, function)
