"""The table of state beside the rows: values by key, each with its checksum;
the schemas that rows name are among them, so that they are as durable as the rows."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence

from cloud_sync.spool.database import translated
from cloud_sync.spool.pending import PendingRow
from cloud_sync.spool.store import Store

SCHEMA_PREFIX = "schema:"
"""Keys that hold the schemas which rows name."""

SCHEMAS_MAX = 256
"""Beyond this number schemas that no row names are deleted."""


class State:
    """The state of a spool."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._schemas = {key.removeprefix(SCHEMA_PREFIX) for key in self.read(SCHEMA_PREFIX)}
        """The schemas that are stored."""

    def read(self, prefix: str = "") -> dict[str, bytes]:
        """The values by key, for keys that begin with `prefix`. A damaged entry is left out and counted."""
        query = "SELECT key, body, checksum FROM state WHERE substr(key, 1, ?) = ? ORDER BY key"
        with self._store.lock, translated(self._store.path):
            found = self._store.db.execute(query, (len(prefix), prefix)).fetchall()
        intact = {key: body for key, body, check in found if is_intact_state(key, body, check)}
        self._store.count("corrupt_state", len(found) - len(intact))
        return intact

    def write(self, values: Mapping[str, bytes | None]) -> None:
        """Store values within a transaction; None deletes a key."""
        for key, body in values.items():
            if body is None:
                self._store.db.execute("DELETE FROM state WHERE key = ?", (key,))
            else:
                stored = (key, body, zlib.crc32(body, zlib.crc32(key.encode())))
                self._store.db.execute("INSERT OR REPLACE INTO state VALUES (?, ?, ?)", stored)

    def schema(self, key: str) -> bytes | None:
        """The content of a schema that rows name; None if it is damaged."""
        return self.read(SCHEMA_PREFIX + key).get(SCHEMA_PREFIX + key)

    def schemas_of(self, group: Sequence[PendingRow]) -> dict[str, bytes | None]:
        """The changes that store the schemas of rows which are not stored yet."""
        named = {schema.key: schema.content for row in group if (schema := row.record.schema) is not None}
        new = {key: content for key, content in named.items() if key not in self._schemas}
        is_full = new and len(self._schemas) >= SCHEMAS_MAX
        unused = self._unused() - named.keys() if is_full else ()
        changes = {**dict.fromkeys(unused), **new}
        return {SCHEMA_PREFIX + key: content for key, content in changes.items()}

    def stored(self, changes: Mapping[str, bytes | None]) -> None:
        """The changes of `schemas_of` are durable."""
        for key, content in changes.items():
            change = self._schemas.discard if content is None else self._schemas.add
            change(key.removeprefix(SCHEMA_PREFIX))

    def _unused(self) -> set[str]:
        """The schemas that no row names; they are stored again when one does."""
        used = self._store.db.execute("SELECT schema FROM rows UNION SELECT schema FROM set_aside").fetchall()
        return self._schemas.difference(key for (key,) in used)


def is_intact_state(key: object, body: object, check: object) -> bool:
    """True if the checksum fits an entry of the state."""
    return (
        isinstance(key, str)
        and isinstance(body, bytes)
        and zlib.crc32(body, zlib.crc32(key.encode())) == check
    )
