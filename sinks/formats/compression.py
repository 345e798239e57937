"""The methods of compression of messages and files."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

Compress = Callable[[bytes], bytes]


def compressor(method: str | None) -> Compress | None:
    """The function that compresses by a method, None for none; the same input always gives the same
    output."""
    return None if method is None else _COMPRESSORS[method]


def _gzip(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def _flate(data: bytes) -> bytes:
    squeeze = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return squeeze.compress(data) + squeeze.flush()


def _zstd(data: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor().compress(data)


_COMPRESSORS: dict[str, Compress] = {"gzip": _gzip, "flate": _flate, "zlib": zlib.compress, "zstd": _zstd}
