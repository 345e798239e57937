"""The rule files of a directory, and their names."""

from __future__ import annotations

import os
from pathlib import Path

MANAGED = "managed"
"""Folder in a rule directory that management over HTTP writes."""

SUFFIXES = (".yaml", ".yml", ".json", ".sql")
"""Files of a directory that are rule files."""


def entries(directory: Path) -> list[Path]:
    """The entries of a directory, by name; none if it cannot be read."""
    try:
        return sorted(directory.iterdir())
    except OSError:
        return []


def is_listable(directory: Path) -> bool:
    """False if the directory is gone, or it or its folder `managed` cannot be read."""
    managed = directory / MANAGED
    try:
        os.scandir(directory).close()
        if managed.is_dir():
            os.scandir(managed).close()
    except OSError:
        return False
    return True


def rule_files(directory: Path) -> list[Path]:
    """The rule files of a directory, by name, and those in its folder `managed`; none if it cannot be read.
    Also what has such a name and is no regular file: it is refused or noted when it is loaded."""
    return [
        path
        for path in (*entries(directory), *entries(directory / MANAGED))
        if path.suffix.lower() in SUFFIXES and path.name[0] not in "._"
    ]


def file_name(path: str | Path) -> str:
    """The name of a rule file in its directory: `pump.yaml`, `managed/rule.pump.json`."""
    path = Path(path)
    return f"{MANAGED}/{path.name}" if path.parent.name == MANAGED else path.name


def function_files(directory: Path) -> list[Path]:
    """The function files of a directory, by name; none if it cannot be read."""
    return [
        path
        for path in entries(directory)
        if path.suffix == ".py" and path.is_file() and path.name[0] not in "._"
    ]
