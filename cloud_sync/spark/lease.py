"""The lease of one OUT: while one run works, a second one is refused, so that neither works in vain.

The lease saves work; the correctness of the tables does not depend on it (`tables`: of two runs one cannot
commit). It is a file that is created if absent and names its holder. A holder that was killed leaves it
behind: it is taken over when it has expired, or at once if its process is known to be gone (same machine).
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from cloud_sync.spark.storage import Storage

NAME = "_lease.json"
LEASE_MS = 15 * 60_000
"""A lease that was not renewed for this time is expired. It is renewed before each batch."""


class Held(Exception):
    """Another run holds the lease; the text names it and says what to do."""


class Lease:
    """A lease that is held. `now_ms` is the wall clock."""

    def __init__(self, storage: Storage, run: str, now_ms: Callable[[], int]) -> None:
        self._storage = storage
        self._run = run
        self._now_ms = now_ms

    def take(self) -> None:
        """Take the lease. Raises Held."""
        for _ in range(3):
            if self._storage.create(NAME, self._content()):
                return
            holder = self._holder()
            if holder is None:
                continue
            if not self._is_gone(holder):
                seconds = max(1, (holder["until"] - self._now_ms()) // 1000)
                raise Held(
                    f"run {holder['run']} (process {holder['process']} on {holder['host']}) works on "
                    f"{self._storage.root}; wait for its end. "
                    f"If it was killed, its lease expires in {seconds} s; "
                    f"delete {NAME} there to go on at once"
                )
            self._storage.delete(NAME)
        raise Held(f"other runs take the lease of {self._storage.root} by turns; try again later")

    def renew(self) -> None:
        """Hold the lease for another while. Raises Held if it was lost."""
        holder = self._holder()
        if holder is not None and holder["run"] != self._run:
            raise Held(f"run {holder['run']} has taken over {self._storage.root}")
        self._storage.delete(NAME)
        if not self._storage.create(NAME, self._content()):
            raise Held(f"another run has taken over {self._storage.root}")

    def release(self) -> None:
        """Give the lease back, if it is still ours."""
        holder = self._holder()
        if holder is not None and holder["run"] == self._run:
            self._storage.delete(NAME)

    def _content(self) -> bytes:
        until = self._now_ms() + LEASE_MS
        return json.dumps(
            {"run": self._run, "host": socket.gethostname(), "process": os.getpid(), "until": until}
        ).encode()

    def _holder(self) -> dict[str, Any] | None:
        content = self._storage.read(NAME)
        if content is None:
            return None
        try:
            found = json.loads(content)
        except ValueError:
            return {"run": "?", "host": "?", "process": 0, "until": self._now_ms() + LEASE_MS}
        return found if isinstance(found, dict) else None

    def _is_gone(self, holder: dict[str, Any]) -> bool:
        if int(str(holder["until"])) < self._now_ms():
            return True
        return holder["host"] == socket.gethostname() and not _runs(int(str(holder["process"])))


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@contextmanager
def held(storage: Storage, run: str, now_ms: Callable[[], int]) -> Iterator[Lease]:
    """The lease of `storage` for the length of the block. Raises Held."""
    lease = Lease(storage, run, now_ms)
    lease.take()
    try:
        yield lease
    finally:
        lease.release()
