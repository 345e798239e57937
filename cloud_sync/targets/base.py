"""The interface of an upload target: five verbs. Data is never overwritten, except by `replace` for
heartbeats.

To add one, add a file here, and its URL scheme in `targets/__init__.py`; the contract suite
of the tests runs on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol


class Target(Protocol):
    """A store of files by name. Names are relative, with `/` between elements. Every verb raises TargetError
    on failure, and `put_if_absent` TooLarge where a smaller file may fit."""

    def put_if_absent(self, name: str, content: bytes) -> bool:
        """Store a file whole and durably, or not at all; False if the name is taken, whatever its content."""

    def replace(self, name: str, content: bytes) -> None:
        """Store a file whole and durably, instead of an earlier one of this name if there is one."""

    def get(self, name: str) -> bytes | None:
        """The content of a file, or None if there is none."""

    def size(self, name: str) -> int | None:
        """The size of a file in bytes, or None if there is none."""

    def names(self, prefix: str) -> Iterator[str]:
        """All names below the folder `prefix`, in no particular order."""
