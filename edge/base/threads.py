"""The share of the interpreter that each thread gets."""

from __future__ import annotations

import sys

SWITCH_S = 0.0005


def switch_soon() -> None:
    """Let a thread that computes give way after half a millisecond,
    where another one waits, instead of after 5.

    The gateway's loop waits so long after each sleep, and after each send, while a thread renders results,
    packs an upload or writes a status.
    """
    sys.setswitchinterval(SWITCH_S)
