"""Questions answered apart from the loop: a forked child has the state as it is between two events, and may
take its time over it while the rules go on.

The child's time and memory are bounded, so a question with millions of pairs of rows ends with a message.
"""

from __future__ import annotations

import contextlib
import math
import os
import resource
import select
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from edge.base.forked import fork
from rules.problems import in_words
from sql.errors import DataError, SqlError

if TYPE_CHECKING:
    from edge.clock import Clock
    from edge.monitor.observed import Observed

MEMORY_BYTES = 256_000_000
"""The memory that a question may take beyond that of the gateway."""

FOUND, REFUSED, FAILED = b"+", b"-", b"!"
"""The first byte of what a child writes: an answer, why there is none, or the defect that prevented it."""


class Apart:
    """Answers one question after the other. Called from the threads of the HTTP server."""

    def __init__(self, daemon: Observed) -> None:
        self._daemon = daemon
        self._one = threading.Lock()

    def answer(self, work: Callable[[], bytes]) -> bytes:
        """The result of `work` in a child, which finds the state unchanged. Raises TimeoutError when the loop
        does not fork, DataError for what `work` refused and for a question beyond the bounds, RuntimeError
        for a defect."""
        limit_ms = self._daemon.config.http.answer_timeout_ms
        if not self._one.acquire(timeout=limit_ms / 1_000):
            raise DataError("other questions are being answered; ask again")
        try:
            return _judged(self._of_child(work, limit_ms), limit_ms)
        finally:
            self._one.release()

    def _of_child(self, work: Callable[[], bytes], limit_ms: int) -> bytes | None:
        """The bytes that a child writes; None where that takes too long."""
        try:
            pid, reader = self._daemon.ask(lambda: _begin(work, limit_ms))
        except TimeoutError:
            raise
        except OSError as error:
            raise DataError(f"no process can be made for the question: {in_words(error)}") from None
        try:
            until_ms = self._daemon.clock.monotonic_ms() + limit_ms
            return _read(reader, until_ms, self._daemon.clock)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(reader)


def _judged(found: bytes | None, limit_ms: int) -> bytes:
    """The answer in what a child has written. Raises DataError without one, RuntimeError for a defect."""
    if found is None:
        raise DataError(
            f"the question takes longer than {limit_ms} ms (http.answerTimeoutMs): "
            "narrow it with WHERE, or join by equal columns"
        )
    if not found:
        raise DataError(
            f"the question takes more than {MEMORY_BYTES // 1_000_000} MB of memory: ask for less"
        )
    kind, text = found[:1], found[1:]
    if kind == REFUSED:
        raise DataError(text.decode())
    if kind == FAILED:
        raise RuntimeError(text.decode())
    return text


def _begin(work: Callable[[], bytes], limit_ms: int) -> tuple[int, int]:
    """In the loop: fork a child that works. Its number, and the end of the pipe that it writes into."""
    reader, writer = os.pipe()
    try:
        return fork(lambda: _work(work, writer, limit_ms), [writer]), reader
    except OSError:
        os.close(reader)
        raise
    finally:
        os.close(writer)


def _work(work: Callable[[], bytes], writer: int, limit_ms: int) -> None:
    """In the child."""
    signal.alarm(math.ceil(limit_ms / 1_000) + 1)  # ends the child if the parent is gone
    with contextlib.suppress(OSError):  # only Linux says how much memory there is
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
        most = pages * resource.getpagesize() + MEMORY_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    try:
        found = FOUND + work()
    except MemoryError:
        return
    except (SqlError, DataError) as error:
        found = REFUSED + str(error).encode()
    except Exception as error:  # noqa: BLE001 - raised in the parent
        found = FAILED + repr(error).encode()
    with os.fdopen(writer, "wb") as pipe:
        pipe.write(found)


def _read(reader: int, until_ms: int, clock: Clock) -> bytes | None:
    """All that a child writes; None where that takes too long."""
    found = bytearray()
    waiting = select.poll()
    waiting.register(reader, select.POLLIN | select.POLLHUP)
    while (left_ms := until_ms - clock.monotonic_ms()) > 0 and waiting.poll(left_ms):
        piece = os.read(reader, 65_536)
        if not piece:
            return bytes(found)
        found += piece
    return None
