"""Formats other than JSON, and the choice of a decoder."""

from __future__ import annotations

import pytest

from edge.deploy.stream_types import whole_decoder
from edge.intake.codecs import CodecError, CodecOptions, decoder_for, row_class
from edge.intake.codecs.rows import attributes
from sql.catalog.streams import Stream


def test_delimited_with_declared_columns() -> None:
    options = CodecOptions(
        fields=("dev", "temp", "on"), types={"temp": "float", "on": "boolean"}, delimiter=";"
    )
    decoder = decoder_for("delimited", None, options)
    rows, bad = decoder.decode_many(
        [b"p1;21.5;true", b'"a;b";;false\n', b"p1;hot;true", b"p1;1", b"a;1;true\nb;2;true"]
    )
    assert rows == [{"dev": "p1", "temp": 21.5, "on": True}, {"dev": "a;b", "temp": None, "on": False}]
    assert [reason for _, reason in bad] == [
        "column 'temp' is declared float, got 'hot'",
        "expected 3 values (dev, temp, on), got 2",
        "expected one line of delimited text, got 2",
    ]


def test_delimited_without_names() -> None:
    assert decoder_for("delimited", None).decode_many([b"1,x"])[0] == [{"col0": "1", "col1": "x"}]


@pytest.mark.parametrize("payload", [b"\xff", b"", b'"open', b'"a"b'])
def test_delimited_refuses(payload: bytes) -> None:
    assert len(decoder_for("delimited", None).decode_many([payload])[1]) == 1


def test_a_delimiter_is_one_character() -> None:
    with pytest.raises(CodecError, match="one character"):
        decoder_for("delimited", None, CodecOptions(delimiter="::"))


def test_a_tab_is_written_as_in_yaml() -> None:
    stream = Stream("s", options={"FORMAT": "delimited", "DELIMITER": r"\t"})
    assert whole_decoder(stream).decode_many([b"1\tx"])[0] == [{"col0": "1", "col1": "x"}]


def test_binary_gives_the_payload() -> None:
    rows, _ = decoder_for("binary", frozenset({"self"})).decode_many([b"\x00\xff"])
    assert rows[0].self == b"\x00\xff"
    declared = CodecOptions(fields=("image",))
    assert decoder_for("binary", None, declared).decode_many([b"\x00"]) == ([{"image": b"\x00"}], [])
    with pytest.raises(CodecError, match="format binary has one column, not 2: a, b"):
        decoder_for("binary", None, CodecOptions(fields=("a", "b")))


def test_urlencoded() -> None:
    rows, bad = decoder_for("urlencoded", None).decode_many(
        [b"dev=7&temp=21.5&tag=a&tag=b&empty=", b"no pairs", b"a=%ff"]
    )
    assert rows == [{"dev": "7", "temp": "21.5", "tag": ["a", "b"], "empty": ""}]
    assert [index for index, _ in bad] == [1, 2]


@pytest.mark.parametrize("name", ["json", "delimited", "binary", "urlencoded"])
def test_every_format_bounds_the_payload(name: str) -> None:
    rows, bad = decoder_for(name, None, CodecOptions(bytes_max=10)).decode_many([b'{"a": 12345}'])
    assert (rows, bad) == ([], [(0, "the payload is longer than the 10 bytes allowed: 12")])


def test_an_unknown_format_names_the_known_ones() -> None:
    with pytest.raises(
        CodecError, match=r"'jsn' is not supported; supported are json, .*did you mean 'json'"
    ):
        decoder_for("jsn", None)


def test_row_classes_are_shared_and_cover_awkward_names() -> None:
    columns = ["temp", "class", "a b", "__init__", "column_0", "größe", ""]
    assert row_class(columns) is row_class(reversed(columns))
    names = attributes(columns)
    assert len(set(names.values())) == len(columns)
    cls = row_class(columns)
    row = cls(**{name: column for column, name in names.items()})
    assert {column: getattr(row, name) for column, name in cls.__columns__.items()} == {c: c for c in columns}
    assert getattr(cls(), names["temp"]) is None
    with pytest.raises((AttributeError, TypeError)):
        row.unknown = 1
