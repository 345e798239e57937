"""The lease of one OUT: while one run works, a second one is refused, so that no work is done twice.

The lease saves work; the correctness of the tables does not depend on it (`tables`: of two runs one cannot
commit). It is a file that is created if absent and names its holder. A holder that was killed leaves it
behind: it is taken over when it has expired, or at once if its process is known to be gone (same machine).
A process is known by its number and the instant of its start: a container that is restarted has the same
number again.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from cloud_sync.spark.storage import Storage

NAME = "_lease.json"
LEASE_MS = 15 * 60_000
"""A lease that was not renewed for this time is expired. It is renewed before each batch."""


class LeaseHeld(Exception):
    """Another run holds the lease; the text names it and says what to do."""


@dataclass(frozen=True, slots=True)
class Holder:
    """The content of a lease: the run that holds it, its process, and the instant until which it counts.
    `began` is the start of the process as Linux counts it; empty elsewhere, and of earlier versions."""

    run: str
    host: str
    process: int
    until: int
    began: str = ""

    def is_gone(self, now_ms: int) -> bool:
        """True if the lease has expired, or if its process was on this machine and has ended."""
        if self.until < now_ms:
            return True
        return self.host == socket.gethostname() and not _runs(self.process, self.began)


class Lease:
    """A lease that is held. `now_ms` is the wall clock."""

    def __init__(self, storage: Storage, run: str, now_ms: Callable[[], int]) -> None:
        self._storage = storage
        self._run = run
        self._now_ms = now_ms

    def take(self) -> None:
        """Take the lease. Raises LeaseHeld."""
        for _ in range(3):
            if self._storage.create(NAME, self._content()):
                return
            holder = self._holder()
            if holder is None:
                continue
            if not holder.is_gone(self._now_ms()):
                seconds = max(1, (holder.until - self._now_ms()) // 1000)
                raise LeaseHeld(
                    f"run {holder.run} (process {holder.process} on {holder.host}) works on "
                    f"{self._storage.root}; wait for its end. "
                    f"If it was killed, its lease expires in {seconds} s; "
                    f"delete {NAME} there to go on at once"
                )
            self._storage.delete(NAME)
        raise LeaseHeld(f"other runs take the lease of {self._storage.root} by turns; try again later")

    def renew(self) -> None:
        """Hold the lease for another while. Raises LeaseHeld if it was lost."""
        holder = self._holder()
        if holder is not None and holder.run != self._run:
            raise LeaseHeld(f"run {holder.run} has taken over {self._storage.root}")
        self._storage.delete(NAME)
        if not self._storage.create(NAME, self._content()):
            raise LeaseHeld(f"another run has taken over {self._storage.root}")

    def release(self) -> None:
        """Give the lease back, if it is still ours."""
        with suppress(LeaseHeld):
            holder = self._holder()
            if holder is not None and holder.run == self._run:
                self._storage.delete(NAME)

    def _content(self) -> bytes:
        process, until = os.getpid(), self._now_ms() + LEASE_MS
        holder = Holder(self._run, socket.gethostname(), process, until, _began(process))
        return json.dumps(asdict(holder)).encode()

    def _holder(self) -> Holder | None:
        """The holder of the lease; None if it is free. Raises LeaseHeld if the file is damaged."""
        content = self._storage.read(NAME)
        if content is None:
            return None
        try:
            found = json.loads(content)
            process, until = int(found["process"]), int(found["until"])
            return Holder(str(found["run"]), str(found["host"]), process, until, str(found.get("began", "")))
        except (ValueError, LookupError, TypeError):
            raise LeaseHeld(
                f"{self._storage.root}/{NAME} is damaged; delete it if no other run is at work"
            ) from None


def _runs(process: int, began: str) -> bool:
    """True if a process of this machine is at work. Another one may have its number by now, which is known
    by its start."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it is there, and another user's
    now = _began(process)
    return not (began and now) or began == now


def _began(process: int) -> str:
    """The start of a process in ticks since the machine's; empty where the system does not tell."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, LookupError):
        return ""


@contextmanager
def held(storage: Storage, run: str, now_ms: Callable[[], int]) -> Iterator[Lease]:
    """The lease of `storage` for the length of the block. Raises LeaseHeld."""
    lease = Lease(storage, run, now_ms)
    lease.take()
    try:
        yield lease
    finally:
        lease.release()
