"""`--watch`: do it again whenever a file among the paths has changed."""

from __future__ import annotations

import argparse
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

LOOK_EVERY_S = 0.3
"""Seconds between two checks of the files."""

SUFFIXES = (".yaml", ".yml", ".json", ".sql", ".py", ".proto")
"""Rule files, and the functions and schemas beside them."""


def add_watch(parser: argparse.ArgumentParser) -> None:
    """The option."""
    parser.add_argument(
        "--watch", action="store_true", help="do it again whenever a file changes; Ctrl-C ends it"
    )


def run_watched(arguments: argparse.Namespace, once: Callable[[argparse.Namespace], int]) -> int:
    """The result of `once`; with `--watch` it is called at every change until the process is interrupted."""
    if not arguments.watch:
        return once(arguments)
    seen = None
    while True:
        now = _state(arguments.paths)
        if now != seen:
            if seen is not None:
                print("--- changed ---", flush=True)
            seen = now
            once(arguments)
            print("watching; Ctrl-C ends", flush=True)
        threading.Event().wait(LOOK_EVERY_S)


def _state(paths: Iterable[Path]) -> dict[Path, tuple[int, int]]:
    """Time of change and size of every file that matters; one that is just being replaced is left out."""
    found: dict[Path, tuple[int, int]] = {}
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path, *path.parent.glob("*.py")]:
            if file.suffix in SUFFIXES:
                try:
                    told = file.stat()
                except OSError:
                    continue
                found[file] = (told.st_mtime_ns, told.st_size)
    return found
