"""Paths with slashes, such as the levels of a topic."""

from __future__ import annotations

import posixpath

from sinks.template.functions.registry import Function
from sinks.template.functions.texts import of_texts


def _clean(path: str) -> str:
    """The shortest path that means the same; of nothing a dot."""
    cleaned = posixpath.normpath(path) if path else "."
    return cleaned[1:] if cleaned.startswith("//") else cleaned


def _base(path: str) -> str:
    """The last element; of nothing a dot, of slashes alone a slash."""
    return path.rstrip("/").rpartition("/")[2] or ("/" if path else ".")


def _ext(path: str) -> str:
    """The last element from its last dot on."""
    _, dot, suffix = path.rpartition("/")[2].rpartition(".")
    return dot and dot + suffix


FUNCTIONS: dict[str, Function] = {
    "base": Function(of_texts(_base), 1, 1),
    "dir": Function(of_texts(lambda path: _clean("".join(path.rpartition("/")[:2]))), 1, 1),
    "clean": Function(of_texts(_clean), 1, 1),
    "ext": Function(of_texts(_ext), 1, 1),
    "isAbs": Function(of_texts(lambda path: path.startswith("/")), 1, 1),
}
