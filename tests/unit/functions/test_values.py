"""Choosing, casting, hashing, encoding, compressing, and what a rule knows about itself."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sql.errors import DataError
from sql.functions import Context, lookup
from sql.functions.limits import DECOMPRESSED_BYTES_MAX
from sql.types import Type
from tests.unit.functions.calls import call, evaluate, example_context


@pytest.mark.parametrize(
    ("value", "target", "expected"),
    [
        (1.9, "bigint", 1), (-1.9, "bigint", -1), (" 42 ", "long", 42), (True, "int", 1),
        (10**30, "bigint", 10**30), ("1e3", "float", 1000.0), (2, "double", 2.0), (False, "float", 0.0),
        (1.5, "string", "1.5"), (True, "string", "true"),
        ("FALSE", "boolean", False), (0, "boolean", False), (0.5, "boolean", True), ("YWJj", "bytea", b"abc"),
        (b"abc", "string", "abc"), (1.7, "datetime", 1), ("1970-01-01", "datetime", 0),
        ("7", "number", 7), ("7.5", "number", 7.5), (True, "number", 1),
    ],
)  # fmt: skip
def test_cast(value: Any, target: str, expected: Any) -> None:
    result = call("cast", value, target)
    assert result == expected and type(result) is type(expected)


@pytest.mark.parametrize(
    ("value", "target"),
    [
        ("1.5", "bigint"), ("1_000", "bigint"), ("", "bigint"), (float("inf"), "bigint"), ([1], "bigint"),
        ("nan", "float"),
        ("1e999", "float"), ("e", "float"), ("yes", "boolean"), ([1], "string"), ({"a": 1}, "string"),
        (5, "bytea"), ("%", "bytea"),
        ("soon", "datetime"), (True, "datetime"), ("[]", "array"), ([1], "array"),
        (b"\xff", "string"), (b"1", "bigint"),
    ],
)  # fmt: skip
def test_impossible_casts_are_errors(value: Any, target: str) -> None:
    with pytest.raises((DataError, UnicodeDecodeError)):
        call("cast", value, target)


def test_an_unknown_type_name_gets_a_suggestion() -> None:
    with pytest.raises(DataError, match="did you mean 'bigint'"):
        call("cast", 1, "bigin")


@pytest.mark.parametrize("name", ["md5", "sha1", "sha256", "sha384", "sha512"])
@pytest.mark.parametrize("value", ["", "Grüße", b"\x00\xff"])
def test_hashes(name: str, value: str | bytes) -> None:
    data = value.encode() if isinstance(value, str) else value
    assert call(name, value) == hashlib.new(name, data).hexdigest()
    assert call("crc32", value) == f"{zlib.crc32(data):x}"


def test_a_hash_of_a_number_is_that_of_its_text() -> None:
    assert call("md5", 5) == call("md5", "5")
    with pytest.raises(DataError, match=r"md5\(\) takes text or bytes, not array"):
        call("md5", [5])


@pytest.mark.parametrize("method", ["zlib", "gzip", "flate", "zstd"])
@given(data=st.binary(max_size=200))
def test_decompress_undoes_compress(method: str, data: bytes) -> None:
    if method == "zstd":
        pytest.importorskip("zstandard")
    assert call("decompress", call("compress", data, method), method) == data


def test_compressed_data_is_what_others_read() -> None:
    assert gzip.decompress(call("compress", "abc", "gzip")) == b"abc"
    assert call("decompress", gzip.compress(b"abc"), "gzip") == b"abc"
    assert call("decompress", zlib.compress(b"abc"), "zlib") == b"abc"


def test_a_small_message_cannot_unpack_into_all_of_the_memory() -> None:
    bomb = zlib.compress(bytes(DECOMPRESSED_BYTES_MAX + 1))
    with pytest.raises(DataError, match="DECOMPRESSED_BYTES_MAX"):
        call("decompress", bomb, "zlib")


@pytest.mark.parametrize(
    ("data", "method", "message"),
    [
        (b"abc", "zlib", "not zlib data"),
        (gzip.compress(b"abc", mtime=0)[:-9], "gzip", "ends too early"),
        (b"", "lz4", "'lz4'"),
    ],
)
def test_damaged_data_is_a_data_error(data: bytes, method: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        call("decompress", data, method)


@pytest.mark.parametrize("text", ["encode('a', 'hex')", "decode('a', 'base64')", "hex2dec('0xg')",
                                  "hex2dec('1_0')",
                                  "chr(-1)", "chr(55296)", "chr(1114112)", "greatest(1, 'a')",
                                  "nullif(1, 'a')"])  # fmt: skip
def test_out_of_domain_is_a_data_error(text: str) -> None:
    with pytest.raises(DataError):
        evaluate(text)


@given(st.integers(-(2**200), 2**200))
def test_hexadecimal_there_and_back(n: int) -> None:
    assert call("hex2dec", call("dec2hex", n)) == n


def test_typeof() -> None:
    values = {
        "bigint": 1,
        "float": 1.0,
        "string": "",
        "boolean": False,
        "bytea": b"",
        "array": [],
        "struct": {},
    }
    assert {name: call("typeof", value) for name, value in values.items()} == {name: name for name in values}
    assert call("typeof", None) is None


def test_result_types() -> None:
    def returned(name: str, *types: Type) -> Type:
        found = lookup(name)
        assert found is not None
        return found.result_type(types)

    assert returned("coalesce", Type.NULL, Type.STRING) is Type.STRING
    assert returned("coalesce", Type.INTEGER, Type.FLOAT) is Type.NUMBER
    assert returned("coalesce", Type.INTEGER, Type.STRING) is Type.ANY
    assert returned("abs", Type.INTEGER) is Type.INTEGER and returned("abs", Type.ANY) is Type.NUMBER
    assert returned("mod", Type.INTEGER, Type.INTEGER) is Type.INTEGER
    assert returned("mod", Type.INTEGER, Type.FLOAT) is Type.FLOAT


def test_two_uuids_differ_and_a_replay_repeats_them() -> None:
    def two(context: Context) -> list[str]:
        return [call("newuuid", context=context), call("newuuid", context=context)]

    first = two(example_context())
    assert first[0] != first[1] and first == two(example_context())
    assert all(text[14] == "4" and text[19] in "89ab" for text in first)
