"""Upload targets, chosen by URL: a directory, or the object stores that obstore knows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from cloud_sync.errors import BadTarget
from cloud_sync.targets.base import Target
from cloud_sync.targets.directory import DirectoryTarget

OBJECT_STORES = ("s3", "s3a", "gs", "az", "abfs", "abfss", "azure", "http", "https", "memory")


TARGETS: dict[str, Callable[[str], Target]] = {}
"""Targets of plug-ins by the scheme of their URL."""


def register_target(scheme: str, make: Callable[[str], Target]) -> None:
    """Make URLs of a scheme known as targets. `make(url)` connects nothing yet; a wrong URL is a
    BadTarget."""
    assert scheme not in TARGETS and scheme not in OBJECT_STORES, f"target {scheme!r} is registered twice"
    TARGETS[scheme] = make


def open_target(url: str) -> Target:
    """The target that `url` names: a path or `file://` is a directory, `s3://`, `gs://`,
    `az://` … an object store.

    Raises BadTarget for an unknown scheme or a missing library. Nothing is connected yet.
    """
    scheme = urlsplit(url).scheme if "://" in url else ""
    if scheme in ("", "file"):
        path = unquote(urlsplit(url).path) if scheme else url
        if not path:
            raise BadTarget(f"target {url!r} names no directory")
        return DirectoryTarget(Path(path))
    if scheme in TARGETS:
        return TARGETS[scheme](url)
    if scheme not in OBJECT_STORES:
        known = ", ".join(("a path", "file", *OBJECT_STORES, *TARGETS))
        raise BadTarget(f"target {url!r} has an unknown scheme {scheme!r}; known are {known}")
    from cloud_sync.targets.objectstore import ObjectStoreTarget

    return ObjectStoreTarget(url)


__all__ = ["TARGETS", "DirectoryTarget", "Target", "open_target", "register_target"]
