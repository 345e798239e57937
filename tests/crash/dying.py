"""`python -m tests.crash.dying OPERATION MOMENT COUNT run ...`: penstock, killed at an operation of its own.

The process kills itself with SIGKILL at the COUNT-th call of a function that changes the disk or sends:
`before` it, `after` it, or `half` way, with the first half of the bytes written.
A child that writes a snapshot kills the gateway.
"""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

MOMENTS = ("before", "half", "after")

WITH_BYTES = {"pwrite": 1, "write": 1, "send": 1}
"""Where the bytes stand among the arguments."""

OPERATIONS = (
    "pwrite", "write", "fdatasync", "fsync", "replace", "link", "unlink", "ftruncate", "posix_fallocate",
    "send", "commit",
)  # fmt: skip
"""Functions of `os`, `send` of a socket, and COMMIT of SQLite."""


class Death:
    """Kills the process `pid` at one call of an operation."""

    def __init__(self, operation: str, moment: str, count: int, pid: int) -> None:
        self._operation = operation
        self._moment = moment
        self._left = count
        self._pid = pid

    def wrap(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """The function, deadly at one of its calls."""

        def deadly(*arguments: Any, **named: Any) -> Any:
            self._left -= 1
            if self._left:
                return call(*arguments, **named)
            if self._moment != "before":
                call(*self._shortened(arguments), **named)
            return self._die()

        return deadly

    def _shortened(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        at = WITH_BYTES.get(self._operation)
        if self._moment != "half" or at is None:
            return arguments
        data = arguments[at]
        return (*arguments[:at], data[: len(data) // 2], *arguments[at + 1 :])

    def _die(self) -> NoReturn:
        os.kill(self._pid, signal.SIGKILL)
        while True:  # a child outlives its gateway by a moment
            time.sleep(0.01)
            if os.getppid() != self._pid:
                os._exit(1)


def install(operation: str, death: Death) -> None:
    """Put the deadly function in the place of the real one."""
    if operation == "send":
        socket.socket.send = death.wrap(socket.socket.send)  # type: ignore[method-assign]
    elif operation == "commit":
        connect = partial(sqlite3.connect, factory=committing(death))
        setattr(sqlite3, "connect", connect)  # noqa: B010 - mypy knows the functions of modules as constants
    else:
        setattr(os, operation, death.wrap(getattr(os, operation)))


def committing(death: Death) -> type[sqlite3.Connection]:
    """Connections whose commits are deadly."""
    deadly = death.wrap(sqlite3.Connection.execute)

    class Connection(sqlite3.Connection):
        def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
            found: sqlite3.Cursor = (
                deadly(self, sql) if sql == "COMMIT" else super().execute(sql, *parameters)
            )
            return found

    return Connection


def main() -> int:
    operation, moment, count, *arguments = sys.argv[1:]
    install(operation, Death(operation, moment, int(count), os.getpid()))
    from edge.cli import main as penstock

    return penstock(arguments)


if __name__ == "__main__":
    sys.exit(main())
