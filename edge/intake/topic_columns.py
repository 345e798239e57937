"""Fills the columns that are parts of the topic into decoded rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from edge.intake.codecs import Decoder
from sql.catalog.topics import topic_values
from sql.rows import attribute_name

TOPICS_REMEMBERED = 10_000
"""Topics whose values are remembered by each stream."""


class TopicColumns:
    """A decoder that also fills columns from the topics of its payloads.

    parts     column to the number of its part, from 1
    columns   the columns that the rules read; None: rows are dicts
    """

    def __init__(self, decoder: Decoder, parts: Mapping[str, int], columns: frozenset[str] | None) -> None:
        self._decoder = decoder
        self._is_dict = columns is None
        wanted = {column: part for column, part in parts.items() if columns is None or column in columns}

        @lru_cache(TOPICS_REMEMBERED)
        def values(topic: str) -> tuple[tuple[str, str | None], ...]:
            found = topic_values(wanted, topic)
            return tuple(
                (name if columns is None else attribute_name(name), value) for name, value in found.items()
            )

        self._values = values

    def decode_many(
        self, payloads: Sequence[bytes], topics: Sequence[str], metas: Sequence[Mapping[str, Any]] | None
    ) -> tuple[list[Any], list[tuple[int, str]]]:
        """`Decoder.decode_many`, with these columns from the topic; a payload's own values are ignored."""
        rows, bad = self._decoder.decode_many(payloads, metas)
        refused = {at for at, _ in bad}
        good = [at for at in range(len(payloads)) if at not in refused]
        if len(good) != len(rows):  # some payload is an array: one by one, to match rows and payloads
            return self._one_by_one(payloads, topics, metas)
        for at, row in zip(good, rows, strict=True):
            self._fill(row, topics[at])
        return rows, bad

    def _one_by_one(
        self, payloads: Sequence[bytes], topics: Sequence[str], metas: Sequence[Mapping[str, Any]] | None
    ) -> tuple[list[Any], list[tuple[int, str]]]:
        rows: list[Any] = []
        bad: list[tuple[int, str]] = []
        for at, payload in enumerate(payloads):
            found, wrong = self._decoder.decode_many([payload], None if metas is None else [metas[at]])
            for row in found:
                self._fill(row, topics[at])
            rows += found
            bad += [(at, reason) for _, reason in wrong]
        return rows, bad

    def _fill(self, row: Any, topic: str) -> None:
        if self._is_dict:
            row.update(self._values(topic))
        else:
            for attribute, value in self._values(topic):
                setattr(row, attribute, value)
