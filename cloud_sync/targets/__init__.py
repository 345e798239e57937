"""Where files are uploaded to, chosen by URL: a directory, or the object stores that obstore knows."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from cloud_sync.errors import BadTarget
from cloud_sync.targets.base import Target
from cloud_sync.targets.directory import DirectoryTarget

OBJECT_STORES = ("s3", "s3a", "gs", "az", "abfs", "abfss", "azure", "http", "https", "memory")


def open_target(url: str) -> Target:
    """The target that `url` names: a path or `file://` is a directory, `s3://`, `gs://`, `az://` … an object store.

    Raises BadTarget for an unknown scheme or a missing library. Nothing is connected yet.
    """
    scheme = urlsplit(url).scheme if "://" in url else ""
    if scheme in ("", "file"):
        path = unquote(urlsplit(url).path) if scheme else url
        if not path:
            raise BadTarget(f"target {url!r} names no directory")
        return DirectoryTarget(Path(path))
    if scheme not in OBJECT_STORES:
        known = ", ".join(("a path", "file", *OBJECT_STORES))
        raise BadTarget(f"target {url!r} has an unknown scheme {scheme!r}; known are {known}")
    from cloud_sync.targets.objectstore import ObjectStoreTarget

    return ObjectStoreTarget(url)


__all__ = ["DirectoryTarget", "Target", "open_target"]
