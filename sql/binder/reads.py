"""The columns that are read of each stream: what messages are decoded for."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

Reads = dict[str, frozenset[str] | None]
"""By stream; None: whole events."""


def note_reads(reads: Reads, stream: str, columns: AbstractSet[str] | None) -> None:
    """Note further columns that are read of a stream."""
    known = reads.get(stream, frozenset())
    reads[stream] = None if columns is None or known is None else known | columns
