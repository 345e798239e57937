"""A process that has imported the gateway and forks one at each request:
a start without the second of imports.

    python -m tests.support.nursery [MODULE ...]
        {"command": [...], "environment": {...}, "log": PATH}     answers the process id
        {"wait": ID}                                              answers the exit code, or null while it runs

Requests and answers are lines of JSON.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import math
import os
import runpy
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any, Protocol

ROOT = Path(__file__).parents[2]

IMPORTS = (
    "edge.commands.run", "edge.daemon", "edge.intake.sources.mqtt.source", "cloud_sync.spool",
    "cloud_sync.uploader", "cloud_sync.targets.directory", "sinks.builtin.nop",
    "edge.deploy.reading.rule_files",
    "sql.engine.statement.statement_instances", "sql.engine.context.host",
)  # fmt: skip


class Child(Protocol):
    """The part of `subprocess.Popen` that is needed of a gateway."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, number: int, /) -> None: ...

    def kill(self) -> None: ...


class Nursery:
    """The parent's side. `modules`: what is imported besides the gateway."""

    def __init__(self, *modules: str) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.support.nursery", *modules],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONWARNINGS": "error"},
        )

    def fork(self, command: list[str], environment: dict[str, str], log: Path) -> Forked:
        """Start a gateway as `subprocess` would with this command."""
        return Forked(self, self.ask({"command": command, "environment": environment, "log": str(log)}))

    def ask(self, request: dict[str, Any]) -> Any:
        """The answer to a request."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(request).encode() + b"\n")
        self._server.stdin.flush()
        return json.loads(self._server.stdout.readline())

    def close(self) -> None:
        """End the server; its children have ended."""
        self._server.kill()
        self._server.communicate()


class Forked:
    """A gateway that was forked, with the part of `subprocess.Popen` that tests use."""

    def __init__(self, nursery: Nursery, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._nursery = nursery

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._nursery.ask({"wait": self.pid})
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        end = time.monotonic() + (math.inf if timeout is None else timeout)
        while (code := self.poll()) is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
            time.sleep(0.005)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(9)


def spawned(command: list[str], environment: dict[str, str], log: Path) -> Child:
    """A child that writes to the end of a log."""
    with log.open("ab") as output:
        return subprocess.Popen(command, cwd=ROOT, stderr=output, stdout=output, env=environment)


def forked(command: list[str], environment: dict[str, str], log: Path) -> Child:
    """A child of a process that has imported the gateway: it starts without the second of imports.
    A library that is to be loaded first needs a process of its own."""
    if "LD_PRELOAD" in environment:
        return spawned(command, environment, log)
    return _nursery().fork(command, environment, log)


@cache
def _nursery() -> Nursery:
    found = Nursery()
    atexit.register(found.close)
    return found


# --- the server --------------------------------------------------------------------------------------------


def answer(request: dict[str, Any]) -> Any:
    """Serve one request."""
    if "wait" in request:
        ended, status = os.waitpid(request["wait"], os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if ended else None
    pid = os.fork()
    if not pid:
        run(request["command"], request["environment"], request["log"])
    return pid


def run(command: list[str], environment: dict[str, str], log: str) -> None:
    """The forked child: become the command, `python -m MODULE ARGUMENTS`."""
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = command[2:]
    runpy.run_module(command[2], run_name="__main__", alter_sys=True)


def main() -> None:
    for name in (*IMPORTS, *sys.argv[1:]):
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    for line in sys.stdin.buffer:
        sys.stdout.write(json.dumps(answer(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
