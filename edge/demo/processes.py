"""The processes of the demo: started with their output in a file, watched while they
start, ended with the demo."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from edge.clock import Clock

START_MS = 20_000
"""The time limit for the start of a process."""

STOP_S = 20
LOG_TAIL_CHARS = 1_500

PORTS = range(15_000, 32_000)
"""Below the ports that the system gives to outgoing connections: one of theirs may be taken between its
choice and the start of the broker."""

PORTS_TRIED_MAX = 100


class DemoError(Exception):
    """The demo cannot go on; the text gives the reason and the place to look."""


class Processes:
    """Starts Python modules; their logs lie in `folder`. `close` ends everything, whatever happened."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self.folder = folder
        self.ending = ExitStack()
        self._clock = clock
        self._tick = threading.Condition()

    def close(self) -> None:
        """End every process that still runs, and whatever else was put on `ending`."""
        self.ending.close()

    def start(
        self, log: str, words: list[str], settings: dict[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start `python -m WORDS` beside the demo."""
        with (self.folder / log).open("ab") as output:
            command = [sys.executable, "-m", *words]
            process = subprocess.Popen(
                command, stdout=output, stderr=output, env=os.environ | (settings or {})
            )
        self.ending.callback(end, process)
        return process

    def call(self, log: str, *words: str) -> int:
        """Run a penstock command to its end, with its results on our standard output;
        returns its exit code."""
        print(
            f"  $ penstock {' '.join(shown(Path(word)) if '/' in word else word for word in words)}",
            flush=True,
        )
        with (self.folder / log).open("ab") as output:
            done = subprocess.run([sys.executable, "-m", "edge.cli", *words], stderr=output, check=False)
        return done.returncode

    def until(
        self, condition: Callable[[], bool], process: subprocess.Popen[bytes], what: str, log: str
    ) -> None:
        """Wait until a process that was just started is ready. Raises DemoError when it
        ends or takes too long."""
        deadline_ms = self._clock.monotonic_ms() + START_MS
        while not condition():
            if process.poll() is not None:
                raise DemoError(f"{what} did not start:\n{(self.folder / log).read_text()[-LOG_TAIL_CHARS:]}")
            if self._clock.monotonic_ms() > deadline_ms:
                raise DemoError(f"{what} was not ready after {START_MS // 1000} s; see {self.folder / log}")
            self.sleep(50)

    def sleep(self, milliseconds: int) -> None:
        """Wait, by the clock."""
        with self._tick:
            self._clock.wait(self._tick, milliseconds)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process that may have ended."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()


def shown(path: Path) -> str:
    """A path as a person writes it: relative to where they are, if it lies below."""
    with suppress(ValueError):
        return str(path.absolute().relative_to(Path.cwd()))
    return str(path)


def free_port() -> int:
    """A TCP port of the loopback interface without a listener now."""
    for port in random.SystemRandom().sample(PORTS, PORTS_TRIED_MAX):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise DemoError(f"all of {PORTS_TRIED_MAX} ports between {PORTS.start} and {PORTS.stop} are in use")


def listens(port: int) -> bool:
    """True if a process accepts connections on the port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
