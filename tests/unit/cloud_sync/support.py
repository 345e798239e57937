"""What the tests of the cloud path share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cloud_sync.errors import TargetError
from cloud_sync.records import Record

NOW_MS = 1_763_683_200_000  # 2025-11-21T00:00:00Z
DATE = "2025-11-21"


def record(number: int, rule: str = "hot", date: str = DATE, size: int = 0) -> Record:
    """A record that tells its number, padded to `size` bytes of body."""
    body = b'{"n":%d,"pad":"%s"}' % (number, b"x" * max(0, size - len(b'{"n":%d,"pad":""}' % number)))
    return Record(rule, date, body)


def records(count: int, start: int = 1, **fields: str) -> list[Record]:
    return [record(number, **fields) for number in range(start, start + count)]  # type: ignore[arg-type]


class MemoryTarget:
    """A target that can be told to fail; the contract suite runs on it as well."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.is_down = False

    def put_if_absent(self, name: str, content: bytes) -> bool:
        self._answer()
        if name in self.files:
            return False
        self.files[name] = content
        return True

    def replace(self, name: str, content: bytes) -> None:
        self._answer()
        self.files[name] = content

    def get(self, name: str) -> bytes | None:
        self._answer()
        return self.files.get(name)

    def size(self, name: str) -> int | None:
        content = self.get(name)
        return None if content is None else len(content)

    def names(self, prefix: str) -> Iterator[str]:
        return (name for name in self.files if name.startswith(prefix + "/"))

    def _answer(self) -> None:
        if self.is_down:
            raise TargetError("the target is down")


def flip_body(path: Path, seq: int) -> None:
    """Damage one row behind the spool's back, as a bad sector would."""
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(path)) as db, db:
        db.execute(
            "UPDATE rows SET body = CAST(replace(body, '\"n\"', '\"m\"') AS BLOB) WHERE seq = ?", (seq,)
        )
