"""Records as bytes: a header with a checksum, then the encoded records, compressed where that pays. Mostly a
frame holds what one commit makes durable.

    magic 2 | codec 2 | length of the body 4 | undurable 4 | checksum 4 | body

The checksum covers header, body and the frame's position, so what an earlier use of the file left is never
taken for a frame. `undurable` is the distance from the last position known to be durable when the frame was
formed. It distinguishes a torn tail (nothing behind it was acknowledged: cut) from damage (something was:
logged and counted).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from edge.journal.record import Lot, Record

MAGIC = b"\xa7J"
_HEADER = struct.Struct("<2sHIII")
_POSITION = struct.Struct("<Q")
HEADER_BYTES = _HEADER.size

COMPRESSED_FROM_BYTES = 200
"""Shorter bodies are written as they are: compression gains little on a single message."""

ZLIB_BYTES_MAX = 400_000
"""Longer bodies are written as they are where there is only zlib: it would hold the
loop for more than 10 ms."""

PLAIN, ZLIB, ZSTD = 0, 1, 2

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Record | Lot).decode

Compressor = tuple[int, Callable[[bytes], bytes]]


class UnknownForm(Exception):
    """An intact frame holds what this version does not know: a newer one wrote it."""


class Frame(NamedTuple):
    """Records found in a segment, with their end and the durable position when they were written."""

    records: Sequence[Record]
    end: int
    durable: int


def compressor(name: str) -> Compressor | None:
    """The compressor of a configured name: none, zlib, zstd, or auto (zstd where it is installed)."""
    if name in ("zstd", "auto"):
        try:
            import zstandard
        except ImportError:
            if name == "zstd":
                raise
        else:
            return ZSTD, zstandard.ZstdCompressor(level=1).compress
    return None if name == "none" else (ZLIB, lambda body: zlib.compress(body, 1))


def encode(records: list[Record], position: int, durable: int, compress: Compressor | None) -> bytes:
    """The frame of records that will stand at `position`."""
    body, codec = _encode(records[0] if len(records) == 1 else Lot(records)), PLAIN
    if compress is not None and is_worth(len(body), compress[0]):
        packed = compress[1](body)
        if len(packed) < len(body):
            codec, body = compress[0], packed
    head = _HEADER.pack(MAGIC, codec, len(body), min(position - durable, 0xFFFF_FFFF), 0)
    check = zlib.crc32(body, zlib.crc32(head, zlib.crc32(_POSITION.pack(position))))
    return head[:-4] + struct.pack("<I", check) + body


def is_worth(size: int, codec: int) -> bool:
    """True if a body of so many bytes is to be compressed."""
    return size >= COMPRESSED_FROM_BYTES and (codec == ZSTD or size <= ZLIB_BYTES_MAX)


def decode(data: bytes, offset: int, position: int) -> Frame | None:
    """The frame at `offset`, which stands at `position` of the journal; None where no intact frame begins.

    Raises UnknownForm.
    """
    if data[offset : offset + 2] != MAGIC or len(data) - offset < HEADER_BYTES:
        return None
    magic, codec, length, undurable, check = _HEADER.unpack_from(data, offset)
    end = offset + HEADER_BYTES + length
    if end > len(data):
        return None
    body = data[offset + HEADER_BYTES : end]
    head = _HEADER.pack(magic, codec, length, undurable, 0)
    if zlib.crc32(body, zlib.crc32(head, zlib.crc32(_POSITION.pack(position)))) != check:
        return None
    try:
        found = _decode(_plain(codec, body))
    except (msgspec.MsgspecError, ValueError, zlib.error) as error:
        raise UnknownForm(str(error)) from None
    records = found.records if isinstance(found, Lot) else (found,)
    return Frame(records, end, position - undurable)


def _plain(codec: int, body: bytes) -> bytes:
    if codec == PLAIN:
        return body
    if codec == ZLIB:
        return zlib.decompress(body)
    if codec == ZSTD:
        import zstandard

        return zstandard.ZstdDecompressor().decompress(body)
    raise ValueError(f"codec {codec} is not known")
