"""Other forms of a value: encodings, compression, number notations. `cast` is in `casting`."""

from __future__ import annotations

import re
from typing import Any

from sql.errors import DataError
from sql.functions.casting import from_base64
from sql.functions.hashing import DATA, octets
from sql.functions.limits import DECOMPRESSED_BYTES_MAX, INTEGER_BITS_MAX, within
from sql.functions.registry import Parameter, function
from sql.types import Type, describe

_HEXADECIMAL = re.compile(r"-?(0[xX]-?)?[0-9a-fA-F]+")

_WINDOW_BITS = {"zlib": 15, "gzip": 31, "flate": -15}
"""zlib's own code for the container: zlib and gzip headers, or none."""


def _window_bits(method: str) -> int:
    bits = _WINDOW_BITS.get(method.lower())
    if bits is None:
        raise DataError(
            f"compress() and decompress() take the method zlib, gzip, flate or zstd, not '{method}'"
        )
    return bits


def _packing(method: str) -> None:
    if method.lower() != "zstd":
        _window_bits(method)


def _only_base64(method: str) -> None:
    if method.lower() != "base64":
        raise DataError(f"encode() and decode() take the method 'base64', not '{method}'")


METHOD = Parameter("method", Type.STRING, check=_packing)
BASE64 = Parameter("method", Type.STRING, check=_only_base64)


@function(
    "encode",
    category="transform",
    returns=Type.STRING,
    parameters=(DATA, BASE64),
    examples=(("encode('abc', 'base64')", "YWJj"),),
)
def encode(value: object, method: str) -> str:
    """Text (in UTF-8) or bytes as base64 text; the method is 'base64'."""
    from base64 import b64encode

    _only_base64(method)
    return b64encode(octets(value, "encode")).decode()


@function(
    "decode",
    category="transform",
    returns=Type.BYTES,
    parameters=(Parameter("text", Type.STRING), BASE64),
    examples=(("decode('YWJj', 'base64')", b"abc"),),
)
def decode(text: str, method: str) -> bytes:
    """The bytes of a base64 text; the method is 'base64'. cast(x, 'string') converts them to text."""
    _only_base64(method)
    return from_base64(text)


# --- compression --------------------------------------------------------------------------------------------


@function(
    "compress",
    category="transform",
    returns=Type.BYTES,
    parameters=(DATA, METHOD),
    examples=(("cast(decompress(compress('abc', 'gzip'), 'gzip'), 'string')", "abc"),),
)
def compress(value: object, method: str) -> bytes:
    """Text (in UTF-8) or bytes compressed by zlib, gzip, flate or zstd (which needs the package
    `zstandard`)."""
    data = octets(value, "compress")
    if method.lower() == "zstd":
        return bytes(_zstandard().ZstdCompressor().compress(data))
    import zlib

    squeeze = zlib.compressobj(wbits=_window_bits(method))
    return squeeze.compress(data) + squeeze.flush()


@function(
    "decompress",
    category="transform",
    returns=Type.BYTES,
    parameters=(Parameter("bytes", Type.BYTES), METHOD),
    examples=(("cast(decompress(decode('S0xKBgA=', 'base64'), 'flate'), 'string')", "abc"),),
)
def decompress(data: bytes, method: str) -> bytes:
    """The bytes that were compressed by `compress`, at most DECOMPRESSED_BYTES_MAX. Damaged or cut data is an
    error."""
    if method.lower() == "zstd":
        return _decompress_zstd(data)
    import zlib

    unsqueeze = zlib.decompressobj(wbits=_window_bits(method))
    try:
        result = unsqueeze.decompress(data, DECOMPRESSED_BYTES_MAX + 1)
    except zlib.error as error:
        raise DataError(f"decompress(): not {method} data: {error}") from None
    within(len(result), DECOMPRESSED_BYTES_MAX, "DECOMPRESSED_BYTES_MAX")
    if not unsqueeze.eof:
        raise DataError(f"decompress(): the {method} data ends too early")
    return result


def _decompress_zstd(data: bytes) -> bytes:
    zstandard = _zstandard()
    try:
        with zstandard.ZstdDecompressor().stream_reader(data) as reader:
            result = bytes(reader.read(DECOMPRESSED_BYTES_MAX + 1))
    except zstandard.ZstdError as error:
        raise DataError(f"decompress(): not zstd data: {error}") from None
    within(len(result), DECOMPRESSED_BYTES_MAX, "DECOMPRESSED_BYTES_MAX")
    return result


def _zstandard() -> Any:
    try:
        import zstandard
    except ImportError:
        raise DataError(
            "the method zstd needs the package 'zstandard'; install it, or use zlib or gzip"
        ) from None
    return zstandard


# --- notations ----------------------------------------------------------------------------------------------


def _check_hexadecimal(text: str) -> None:
    within(len(text) * 4, INTEGER_BITS_MAX, "INTEGER_BITS_MAX")
    if not _HEXADECIMAL.fullmatch(text):
        raise DataError(f"{describe(text)} is not a hexadecimal number")


@function(
    "hex2dec",
    category="transform",
    returns=Type.INTEGER,
    parameters=(Parameter("text", Type.STRING, check=_check_hexadecimal),),
    examples=(("hex2dec('0x10')", 16), ("hex2dec('ff')", 255)),
)
def hex2dec(text: str) -> int:
    """The integer of a hexadecimal text, with or without `0x`."""
    _check_hexadecimal(text)
    return int(text.lower().replace("0x-", "-0x", 1), 16)


@function(
    "dec2hex",
    category="transform",
    returns=Type.STRING,
    parameters=(Parameter("n", Type.INTEGER),),
    examples=(("dec2hex(16)", "0x10"), ("dec2hex(-255)", "0x-ff"), ("hex2dec(dec2hex(-255))", -255)),
)
def dec2hex(n: int) -> str:
    """The integer as hexadecimal text behind `0x`."""
    return f"0x{n:x}"


@function(
    "chr",
    category="transform",
    returns=Type.STRING,
    parameters=(Parameter("code_point", Type.INTEGER),),
    examples=(("chr(65)", "A"), ("chr(8364)", "€")),
)
def chr_(code_point: int) -> str:
    """The character with this Unicode code point, as text."""
    if not 0 <= code_point <= 0x10FFFF or 0xD800 <= code_point <= 0xDFFF:
        raise DataError(f"{code_point} is not the code point of a character")
    return chr(code_point)
