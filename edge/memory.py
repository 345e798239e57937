"""The memory of the process: how much it is, and giving back what only the start needed."""

from __future__ import annotations

import ctypes
import gc
import os
from pathlib import Path

STATM = Path("/proc/self/statm")


def resident_bytes() -> int:
    """Resident memory of this process; 0 where the system does not tell."""
    try:
        return int(STATM.read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0


def calm_collector() -> None:
    """Let the garbage collector look less often than after every 700 new objects.

    Most objects are rows and results that die within their batch, without cycles. The collector would look at each of
    them while it is still in use; a batch later reference counting has freed them unseen.
    """
    gc.set_threshold(50_000, 20, 50)


def settle() -> None:
    """Once the rules are deployed: collect, keep what is left out of later collections, return free pages.

    Parsing and planning leave some megabytes of free heap behind, which glibc keeps unless asked.
    """
    gc.collect()
    gc.freeze()
    calm_collector()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
