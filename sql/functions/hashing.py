"""Hashes of text or bytes, as lower-case hexadecimal text. Text is hashed in UTF-8."""

from __future__ import annotations

from sql.errors import DataError
from sql.functions.registry import Parameter, function
from sql.types import Type, as_text, describe


def octets(value: object, caller: str) -> bytes:
    """The bytes of a text (UTF-8) or of bytes; raises `DataError` for anything else.

    >>> octets("ü", "md5")
    b'\\xc3\\xbc'
    """
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    raise DataError(
        f"{caller}() takes text or bytes, not {describe(value)}; convert it with cast(x, 'string')"
    )


def not_a_number(value: object) -> None:
    """Raise `DataError` for a constant that is neither text nor bytes."""
    if not isinstance(value, str | bytes):
        raise DataError(f"text or bytes are needed, not {describe(value)}; convert it with cast(x, 'string')")


def _hashed(value: object, caller: str) -> bytes:
    """The bytes as from `octets`; a number or a boolean of the data counts as its text."""
    return octets(as_text(value) if value.__class__ in (int, float, bool) else value, caller)


DATA = Parameter("text_or_bytes", check=not_a_number)


def _hash(algorithm: str, bits: int, example: tuple[str, str]) -> None:
    def digest(value: object) -> str:
        import hashlib

        return hashlib.new(algorithm, _hashed(value, algorithm), usedforsecurity=False).hexdigest()

    digest.__doc__ = f"The {algorithm.upper()} hash, {bits} bits as {bits // 4} hexadecimal digits."
    function(algorithm, category="hash", returns=Type.STRING, parameters=(DATA,), examples=(example,))(digest)


_hash("md5", 128, ("md5('abc')", "900150983cd24fb0d6963f7d28e17f72"))
_hash("sha1", 160, ("sha1('abc')", "a9993e364706816aba3e25717850c26c9cd0d89d"))
_hash("sha256", 256, ("sha256('abc')", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"))
_hash("sha384", 384, ("substring(sha384('abc'), 0, 16)", "cb00753f45a35e8b"))
_hash("sha512", 512, ("substring(sha512('abc'), 0, 16)", "ddaf35a193617aba"))


@function(
    "crc32",
    category="hash",
    returns=Type.STRING,
    parameters=(DATA,),
    examples=(("crc32('123456789')", "cbf43926"), ("crc32('')", "0")),
)
def crc32(value: object) -> str:
    """The CRC-32 checksum (IEEE polynomial) as a hexadecimal number of up to 8 digits."""
    from binascii import crc32 as checksum

    return f"{checksum(_hashed(value, 'crc32')):x}"
