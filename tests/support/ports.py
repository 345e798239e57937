"""TCP ports for servers that tests start."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path

FIRST, END = 15_000, 32_000
"""The range lies below the ports that the system gives to outgoing connections (Linux: 32768 on). A port
of theirs may be taken between its choice and the start of its server, or while a broker restarts, and
whoever asks such a port whether somebody listens can be connected to itself."""

_held: dict[int, int] = {}
"""The locked files of this process by port: nobody else uses these ports while it runs."""


def free_port() -> int:
    """A port of the loopback interface without a listener; no other test gets it until this process ends."""
    folder = Path(tempfile.gettempdir()) / f"penstock-ports-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    chosen = random.SystemRandom().sample(range(FIRST, END), 500)
    for port in chosen:
        if port not in _held and _is_free(port) and _hold(folder / str(port), port):
            return port
    raise OSError(f"all of {len(chosen)} ports between {FIRST} and {END} are in use")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _hold(path: Path, port: int) -> bool:
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return False
    _held[port] = descriptor
    return True


def listens(port: int) -> bool:
    """Whether somebody accepts connections on the port."""
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def answers(port: int) -> bool:
    """Whether a server reads what it is sent: it ends a connection that begins with bytes of no protocol."""
    with socket.socket() as client:
        client.settimeout(0.5)
        try:
            client.connect(("127.0.0.1", port))
            client.sendall(bytes(5))  # as many as a TLS server reads at first
            client.recv(1)
        except ConnectionResetError:
            return True
        except OSError:
            return False
        return True
