"""Single keys of a terminal, without Enter."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import threading
from collections.abc import Callable, Iterator


def _no_key(seconds: float) -> str:
    threading.Event().wait(seconds)
    return ""


@contextlib.contextmanager
def single_keys() -> Iterator[Callable[[float], str]]:
    """Gives `wait(seconds)`: the key that was pressed meanwhile, or an empty text.

    Where standard input is no terminal it only waits. The terminal is as before when the block ends.
    """
    if not sys.stdin.isatty():
        yield _no_key
        return
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)

    def wait(seconds: float) -> str:
        ready, _, _ = select.select([descriptor], [], [], seconds)
        return os.read(descriptor, 16).decode("utf-8", "replace") if ready else ""

    try:
        yield wait
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
