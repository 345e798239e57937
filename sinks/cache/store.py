"""The file behind a cached action: results in order, and the number of the last one that was stored.

An SQLite database of its own for each action. One transaction stores new results and deletes delivered ones,
and is on the disk when it returns. A damaged file is moved aside, so that new results can be stored.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from sinks.formats import lossless_json
from sql import Emission

LOG = logging.getLogger("penstock.sinks.cache")

NAME_CHARS_MAX = 200
"""The longest file name that is the action's key; a longer key is hashed."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS results
    (seq INTEGER PRIMARY KEY AUTOINCREMENT, late INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS mark (number INTEGER NOT NULL);
"""


class Stored(NamedTuple):
    """A result in the file. `late`: its destination was unreachable when it came."""

    seq: int
    late: bool
    emission: Emission


def cache_path(folder: Path, key: str) -> Path:
    """The file of an action; `key` identifies it among all of the gateway.

    >>> cache_path(Path("cache"), "hot/actions/0/mqtt").name
    'hot%2Factions%2F0%2Fmqtt.db'
    """
    name = quote(key, safe="")
    if len(name) > NAME_CHARS_MAX:
        name = hashlib.sha256(key.encode()).hexdigest()
    return folder / f"{name}.db"


def mark_of(path: Path) -> int:
    """The number of the last row that was stored; 0 without a readable file."""
    if not path.exists():
        return 0
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(path)) as database:
        return _mark(database)
    return 0


def is_newer(path: Path) -> bool:
    """True of a readable file in a form that only a newer version knows: SQLite's `user_version` is not 0."""
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(path)) as database:
        return bool(database.execute("PRAGMA user_version").fetchone()[0])
    return False


def results_in(path: Path) -> int:
    """The number of results in a file; 0 if it cannot be read."""
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(path)) as database:
        (count,) = database.execute("SELECT count(*) FROM results").fetchone()
        return int(count)
    return 0


def _mark(database: sqlite3.Connection) -> int:
    (number,) = database.execute("SELECT max(number) FROM mark").fetchone()
    return int(number or 0)


class CacheStore:
    """The open file. Belongs to the thread that made it; every method raises
    sqlite3.Error if the disk is full."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            self._database = _opened(path)
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise
            aside = path.with_suffix(".damaged")
            LOG.error("cache.damaged", extra={"file": str(path), "aside": str(aside), "error": str(error)})
            path.replace(aside)
            self._database = _opened(path)
        count, last = self._database.execute("SELECT count(*), max(seq) FROM results").fetchone()
        self.count = int(count)
        self._left = int(last or 0)
        self.mark = _mark(self._database)

    def change(self, came: Sequence[tuple[bool, Emission]], mark: int, done: int) -> None:
        """Store new results, numbered up to `mark`, and delete delivered ones: all up to seq `done`."""
        with self._database as database:
            gone = database.execute("DELETE FROM results WHERE seq <= ?", (done,)).rowcount
            bodies = [(late, _encoded(emission)) for late, emission in came]
            database.executemany("INSERT INTO results (late, body) VALUES (?, ?)", bodies)
            if mark > self.mark:
                database.execute("DELETE FROM mark")
                database.execute("INSERT INTO mark VALUES (?)", (mark,))
        self.count += len(came) - gone
        self.mark = max(mark, self.mark)

    def drop(self, after: int, limit: int) -> int:
        """Delete the oldest `limit` results behind seq `after`; the number deleted."""
        with self._database as database:
            chosen = "SELECT seq FROM results WHERE seq > ? ORDER BY seq LIMIT ?"
            gone = database.execute(f"DELETE FROM results WHERE seq IN ({chosen})", (after, limit)).rowcount
        self.count -= gone
        return gone

    def read(self, after: int, limit: int) -> list[Stored]:
        """The oldest results behind seq `after`. Those that were in the file when it was opened are late."""
        found = self._database.execute(
            "SELECT seq, late, body FROM results WHERE seq > ? ORDER BY seq LIMIT ?", (after, limit)
        )
        return [Stored(seq, bool(late) or seq <= self._left, _decoded(body)) for seq, late, body in found]

    def clear(self) -> None:
        """Delete all results; the mark stays."""
        with self._database as database:
            database.execute("DELETE FROM results")
        self.count = 0

    def close(self) -> None:
        self._database.close()


def _opened(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path)
    try:
        path.chmod(0o600)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.executescript(_SCHEMA)
    except BaseException:
        database.close()
        raise
    return database


def _encoded(emission: Emission) -> bytes:
    """An emission in the encoding of a row."""
    return lossless_json.encode(
        [
            emission.rule,
            emission.at_ms,
            emission.kind,
            emission.inserted,
            list(emission.removed),
            emission.error,
        ]
    )


def _decoded(body: bytes) -> Emission:
    return Emission(*lossless_json.decode(body))
