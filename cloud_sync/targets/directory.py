"""A directory as a target: a mounted share, or the bucket of a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cloud_sync.errors import TargetError
from cloud_sync.names import safe
from cloud_sync.targets.file_operations import DiskFiles, Files
from rules.problems import in_words

TEMPORARY = "_incoming"
"""Folder of unfinished files. Readers of the bucket skip names that begin with an underscore."""


class DirectoryTarget:
    """Files below `root`. A file appears under its name only when it is whole and on the disk."""

    def __init__(self, root: Path, files: Files | None = None) -> None:
        self.root = root
        self._files = files or DiskFiles()

    def put_if_absent(self, name: str, content: bytes) -> bool:
        """Write aside, fsync, link to the name (which fails if it is taken), fsync the folder."""
        files, path = self._files, self._path(name)
        # names hold a content hash: a retry replaces its own left-over
        temporary = self.root / TEMPORARY / path.name
        with _trying(f"cannot store {path}"):
            if files.read(path) is not None:
                files.sync_folder(path.parent)  # a crash may have left the name before it was durable
                files.remove(temporary)
                return False
            self._write_aside(temporary, path, content)
            try:
                files.link(temporary, path)
                created = True
            except FileExistsError:
                created = False
            files.sync_folder(path.parent)
            files.remove(temporary)
        return created

    def replace(self, name: str, content: bytes) -> None:
        """Write aside, fsync, rename, fsync the folder."""
        files, path = self._files, self._path(name)
        temporary = self.root / TEMPORARY / safe(name)
        with _trying(f"cannot store {path}"):
            self._write_aside(temporary, path, content)
            files.replace(temporary, path)
            files.sync_folder(path.parent)

    def _write_aside(self, temporary: Path, path: Path, content: bytes) -> None:
        files = self._files
        files.make_folder(temporary.parent)
        files.make_folder(path.parent)
        files.write(temporary, content)
        files.sync(temporary)

    def get(self, name: str) -> bytes | None:
        with _trying(f"cannot read {name} in {self.root}"):
            return self._files.read(self._path(name))

    def size(self, name: str) -> int | None:
        with _trying(f"cannot read {name} in {self.root}"), suppress(FileNotFoundError):
            return self._path(name).stat().st_size
        return None

    def names(self, prefix: str) -> Iterator[str]:
        for path in (self.root / prefix).rglob("*"):
            if path.is_file():
                yield path.relative_to(self.root).as_posix()

    def _path(self, name: str) -> Path:
        assert name and not name.startswith("/") and ".." not in name.split("/"), name
        return self.root / name


@contextmanager
def _trying(attempt: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise TargetError(f"{attempt}: {in_words(error, with_file=False)}") from error
