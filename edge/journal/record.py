"""The records of the journal: every input of the gateway loop, as plain data, with packed messages.

A record stands for one step of the loop. Replaying the records in order, with their times, brings the engine
into the state that it had, because nothing else reaches it. Times are steady milliseconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import repeat
from operator import and_
from typing import cast

import msgspec

from edge.base.message import ACKNOWLEDGED, Message, qos_of


class Batch(msgspec.Struct, array_like=True, tag="batch", frozen=True):
    """Messages as the loop took them, in columns. Topics are numbers that count from 0 in each segment, and
    `new_topics` names the ones that this batch uses first, from `first_new` on."""

    at_ms: int
    first_new: int
    new_topics: list[str]
    topics: list[int]
    payloads: list[bytes]
    ids: list[int]
    """Packet ids; 0 at QoS 0."""
    flags: bytes
    connection: str = ""
    """The name of the broker's connection; empty: the gateway's own broker, or a source of a stream."""


class Tick(msgspec.Struct, array_like=True, tag="tick", frozen=True):
    """Timers that were due at this time fired."""

    at_ms: int


class Deployment(msgspec.Struct, array_like=True, tag="deployment", frozen=True):
    """The rule files changed.

    texts     every file in use by name
    kept      files whose running rules stay as they are, though the text of the file is bad
    numbers   the first row number of a rule, if the spool has rows that the journal does not have
    """

    at_ms: int
    texts: dict[str, str]
    kept: list[str]
    numbers: dict[str, int]


class Removal(msgspec.Struct, array_like=True, tag="removal", frozen=True):
    """The grace of these rules ended: they are gone with their state."""

    at_ms: int
    rules: list[str]


class Receipts(msgspec.Struct, array_like=True, tag="receipts", frozen=True):
    """Sinks have taken everything up to a number: (rule, role, position of the action, sink, number)."""

    delivered: list[tuple[str, str, int, str, int]]


Answer = tuple[str, list[str], list[str | int | float | bool], bytes]
"""The answer of a store: table, columns and values of the key, and the rows as JSON;
of a refusal the reason as a JSON string."""


class Answers(msgspec.Struct, array_like=True, tag="answers", frozen=True):
    """Stores have answered, in this order."""

    at_ms: int
    answers: list[Answer]


class Policies(msgspec.Struct, array_like=True, tag="policies", frozen=True):
    """The treatment of the answers of stores from now on: the values of a
    `sql.plan.lookup_plan.AnswerPolicy` by table."""

    at_ms: int
    tables: dict[str, tuple[int | bool | str, ...]]


class Session(msgspec.Struct, array_like=True, tag="session", frozen=True):
    """The session that a broker keeps, recorded when a connection begins and when subscriptions change.

    name      broker and client, for a session belongs to both
    granted   topic filters and their QoS
    is_new    the broker had no session, and repeats nothing of earlier connections
    cut_off   packet ids under which a first transmission was broken off: their earlier messages are done with
    connection  its name; empty: the gateway's own broker
    """

    name: str
    granted: dict[str, int]
    is_new: bool = False
    cut_off: list[int] = []
    connection: str = ""


_AT_MOST_ONCE, _AT_LEAST_ONCE = {0}, {0x02}
"""The flags of messages that are mostly alike: those of QoS 0, and of QoS 1."""

Timed = Batch | Tick | Deployment | Removal | Answers | Policies
"""The records that say when they were made."""

Record = Timed | Receipts | Session


class Lot(msgspec.Struct, array_like=True, tag="lot", frozen=True):
    """The records of one frame, in order. A frame of a single one holds that record itself."""

    records: list[Record]


@dataclass(slots=True)
class Topics:
    """The numbers of a segment's topics. A number stands for one topic, of which there may be several."""

    numbers: dict[str, int] = field(default_factory=dict)
    count: int = 0

    def name_anew(self) -> None:
        """Let the next messages name their topics, under new numbers."""
        self.numbers.clear()

    def learn(self, names: Sequence[str]) -> list[str]:
        """Number the topics among these that have no number; returns them in the order of their numbers."""
        if self.numbers.keys() >= set(names):
            return []
        new = [topic for topic in dict.fromkeys(names) if topic not in self.numbers]
        self.numbers.update(zip(new, range(self.count, self.count + len(new)), strict=True))
        self.count += len(new)
        return new


def pack(at_ms: int, messages: Sequence[Message], topics: Topics, connection: str = "") -> Batch:
    """Messages of one connection as a record. `topics` numbers those of the segment, and learns new ones."""
    names, payloads, tokens, flags = zip(*messages, strict=True)
    first_new = topics.count
    new = topics.learn(names)
    numbers = [*map(topics.numbers.__getitem__, names)]
    return Batch(at_ms, first_new, new, numbers, [*payloads], _ids(tokens, flags), bytes(flags), connection)


def _ids(tokens: Sequence[int | None], flags: Sequence[int]) -> list[int]:
    """The packet ids of messages, as `message_id` says, mostly without a step for each."""
    kinds = set(flags)
    if kinds == _AT_MOST_ONCE:
        return [0] * len(flags)
    if kinds == _AT_LEAST_ONCE and None not in tokens:
        return [*map(and_, cast("Sequence[int]", tokens), repeat(0xFFFF))]
    return [
        token & 0xFFFF if flag & ACKNOWLEDGED and token is not None else 0
        for token, flag in zip(tokens, flags, strict=True)
    ]


def unpack(batch: Batch, topics: dict[int, str]) -> list[Message]:
    """The messages of a record, without the connection's part of their tokens. `topics` learns new ones.

    Messages whose topic was named by a record that is damaged are left out.
    """
    topics.update(enumerate(batch.new_topics, batch.first_new))
    columns = zip(batch.topics, batch.payloads, batch.ids, batch.flags, strict=True)
    return [
        (topics[topic], payload, packet_id if qos_of(flags) else None, flags)
        for topic, payload, packet_id, flags in columns
        if topic in topics
    ]
