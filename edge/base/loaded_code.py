"""Detects that the installed files are no longer those that this process runs."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

PACKAGES = frozenset({"cloud_sync", "edge", "rules", "sinks", "sql"})


class LoadedCode:
    """The files of the modules that are loaded now, as they are now."""

    def __init__(self) -> None:
        found = ((name, vars(module).get("__file__")) for name, module in [*sys.modules.items()])
        self._paths = tuple(path for name, path in found if path and name.partition(".")[0] in PACKAGES)
        self._stamp = _stamp(self._paths)

    def is_replaced(self) -> bool:
        """True if one of the files has been written anew, or is gone."""
        return _stamp(self._paths) != self._stamp


def _stamp(paths: Iterable[str]) -> int:
    """A number for the versions of files."""
    return hash(tuple(map(_version, paths)))


def _version(path: str) -> tuple[int, int] | None:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
