"""The memory of the process: its size, and the release of memory that only the start needed."""

from __future__ import annotations

import ctypes
import gc
import os
from pathlib import Path

STATM = Path("/proc/self/statm")

M_ARENA_MAX = -8
"""The number of this option in glibc's <malloc.h>."""


def resident_bytes() -> int:
    """Resident memory of this process; 0 where the system does not report it."""
    try:
        return int(STATM.read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0


def be_frugal() -> None:
    """Take less memory from the start; to be called before threads are started and pydantic is imported.

    One pool for all threads, instead of one for each that glibc would keep half empty: few of them allocate
    at the same time, for the interpreter lock is theirs in turns. No plugins of pydantic, whose search reads
    the metadata of all installed packages.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_ARENA_MAX, 1)
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")


def collect_and_freeze() -> None:
    """Collect what nothing uses any more, and exempt the rest from later collections."""
    gc.collect()
    gc.freeze()


def release_startup() -> None:
    """After the deployment of rules: collect, freeze, and return the free pages that glibc would keep."""
    collect_and_freeze()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
