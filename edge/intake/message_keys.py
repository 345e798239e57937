"""Messages that carry their own identity: one whose key was seen before has no second effect.

For brokers and bridges whose repetitions MQTT's packet ids do not show: shared subscriptions that move,
a broker that came back from an older state, a publisher that sends again after a time-out. A stream names
the field, `messageKey`; the newest `KEYS_MAX` values of each stream are remembered, in snapshots and by the
replay of the journal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from edge.base.message import Message

KEYS_MAX = 100_000
"""Keys remembered per stream; of further ones the oldest are forgotten."""


class StreamKeys:
    """The keys of one stream, the oldest first."""

    def __init__(self, field: str, seen: Iterable[Any] = ()) -> None:
        self.field = field
        self.seen = dict.fromkeys(seen)
        shape: Any = msgspec.defstruct("Keyed", [("key", str | int | None, None)], rename={"key": field})
        self._decode = msgspec.json.Decoder(shape).decode

    def note(self, payload: bytes) -> bool:
        """Remember the key of a message; whether it is new. Without a key, or with one that is neither text
        nor a whole number, every message is new."""
        try:
            key = self._decode(payload).key
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return True
        if key is None:
            return True
        if key in self.seen:
            return False
        self.seen[key] = None
        if len(self.seen) > KEYS_MAX:
            del self.seen[next(iter(self.seen))]
        return True


class MessageKeys:
    """The keys of all streams that name one. Used by the gateway loop only."""

    def __init__(self) -> None:
        self.recognised = 0
        self.are_used = False
        """True if a stream names a key."""
        self._streams: dict[str, StreamKeys] = {}
        self._restored: dict[str, StreamKeys] = {}
        """What an earlier run knew of streams that are not followed yet."""

    def follow(self, fields: Mapping[str, str]) -> None:
        """These streams have a key from now on; what was known of others is forgotten, as
        where the field changed."""
        self._streams = {name: self._keys(name, field) for name, field in fields.items()}
        self.are_used = bool(fields)

    def _keys(self, name: str, field: str) -> StreamKeys:
        for known in (self._streams.get(name), self._restored.pop(name, None)):
            if known is not None and known.field == field:
                return known
        return StreamKeys(field)

    def fresh(self, messages: list[Message], streams_of: Callable[[str], Iterable[str]]) -> list[Message]:
        """The messages whose key is new; from now on it is known. `streams_of` gives
        the streams of a topic."""
        found = [message for message in messages if self._is_new(message, streams_of(message[0]))]
        self.recognised += len(messages) - len(found)
        return found

    def note(self, messages: Sequence[Message], streams_of: Callable[[str], Iterable[str]]) -> None:
        """Replay: these messages were processed."""
        if self._streams:
            for message in messages:
                self._is_new(message, streams_of(message[0]))

    def _is_new(self, message: Message, streams: Iterable[str]) -> bool:
        notes = [self._streams[name].note(message[1]) for name in streams if name in self._streams]
        return all(notes)  # only now: every stream has to remember it

    def snapshot(self) -> dict[str, Any]:
        """The state that the next run needs."""
        return {name: [keys.field, list(keys.seen)] for name, keys in self._streams.items()}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Restore the keys that an earlier run had seen; applied when the streams are followed."""
        self._restored = {name: StreamKeys(field, seen) for name, (field, seen) in saved.items()}
        followed = {name: keys.field for name, keys in self._streams.items()}
        self._streams |= {
            name: keys for name, keys in self._restored.items() if followed.get(name) == keys.field
        }
