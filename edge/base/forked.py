"""Child processes forked off the gateway, with the state that it has at that instant."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from typing import NoReturn

from edge.base import signals


def fork(work: Callable[[], None], kept: Sequence[int] = ()) -> int:
    """Let a child process work; its number. It ends with 0, or with 1 after an exception. Raises OSError.

    The signals that stop the gateway do not end the child; the gateway does.
    `work` may use no lock, thread or descriptor of the gateway but the descriptors `kept`.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads: the child uses none of their locks
        pid = os.fork()
    if pid == 0:
        _work_and_exit(work, kept)
    return pid


def _work_and_exit(work: Callable[[], None], kept: Sequence[int]) -> NoReturn:
    """The child. It closes its descriptors first, for one of them holds the lock of the spool."""
    code = 1
    try:
        signals.ignore()
        first = 3
        for number in (*sorted(kept), os.sysconf("SC_OPEN_MAX")):
            os.closerange(first, number)
            first = number + 1
        work()
        code = 0
    finally:
        os._exit(code)
