"""SIGTERM, SIGINT and SIGHUP, heard by a thread of their own.

Python runs a signal handler in the main thread, between two of its steps; a signal that comes just before the
main thread begins to wait for a lock is noticed when the lock is released, which may be never. So the
interpreter writes the number of the signal into a socket, and a thread that reads it does what is to be done.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable

STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""SIGHUP comes when the terminal is closed; it is no request to read the rules again, which are watched."""


def end_at_once() -> None:
    """Until `listen` is called, end the process with 0 at the first signal: there is nothing yet to stop in
    order."""
    for number in _heard():
        signal.signal(number, lambda *_: os._exit(0))


def listen(on_first: Callable[[], None]) -> None:
    """From now on call `on_first` at the first signal, in another thread, and exit at once at the second.

    Must be called from the main thread. Exiting at once has the effect of a power cut:
    nothing acknowledged is lost.
    """
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    for number in _heard():
        # Without a handler the default would end the process; this one only makes the interpreter write.
        signal.signal(number, lambda *_: None)

    threading.Thread(
        target=_wait_for_two, args=(reader, writer, on_first), name="signals", daemon=True
    ).start()


def ignore() -> None:
    """In a child of the process that listens: go on until that process ends the child. A terminal and a
    service manager signal all processes of a gateway, and the stop in order may need the child's answer."""
    signal.set_wakeup_fd(-1)  # the number may be that of a file that the child opens
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)


def _heard() -> list[signal.Signals]:
    """The stopping signals, without those that the caller of the process ignores, as nohup does."""
    return [number for number in STOPPING if signal.getsignal(number) is not signal.SIG_IGN]


def _wait_for_two(reader: socket.socket, writer: socket.socket, on_first: Callable[[], None]) -> None:
    with writer:  # closed sockets are not written to
        _next(reader)
        on_first()
        os._exit(128 + _next(reader))


def _next(reader: socket.socket) -> int:
    """The number of the next stopping signal; others are ignored."""
    while (number := reader.recv(1)[0]) not in STOPPING:
        pass
    return number
