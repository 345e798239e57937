"""JSON payloads: the codec beside its twin, hostile input."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.intake.codecs import CodecOptions
from edge.intake.codecs.json_codec import JsonDecoder, depth_exceeds, msgspec_parser
from tests.reference.json_strict import standard_parser

COLUMNS = frozenset({"a", "b", "dev id", "class"})
PARSERS = {"msgspec": msgspec_parser, "standard library": standard_parser}

ACCEPTED: dict[str, tuple[bytes, Any]] = {
    "object": (b'{"a": 1, "b": "x", "other": [1]}', {"a": 1, "b": "x"}),
    "white space around": (b' \t\r\n{"a": 1} \n', {"a": 1}),
    "empty object": (b"{}", {}),
    "null": (b'{"a": null}', {"a": None}),
    "whole number": (b'{"a": 21}', {"a": 21}),
    "whole float stays float": (b'{"a": 21.0}', {"a": 21.0}),
    "exponent": (b'{"a": 1E3}', {"a": 1000.0}),
    "negative zero": (b'{"a": -0.0}', {"a": -0.0}),
    "above 64 bits": (b'{"a": 18446744073709551616}', {"a": 18446744073709551616}),
    "4,300 digits": (b'{"a": ' + b"9" * 4_300 + b"}", {"a": 10**4_300 - 1}),
    "duplicate key, last wins": (b'{"a": 1, "a": 2}', {"a": 2}),
    "column names that are no Python names": (b'{"dev id": 7, "class": "x"}', {"dev id": 7, "class": "x"}),
    "NUL in a key": (b'{"\\u0000": 1, "a": 1}', {"a": 1}),
    "surrogate pair": (b'{"a": "\\ud83d\\ude00"}', {"a": "\U0001f600"}),
    "escaped backslash before u": (b'{"a": "\\\\ud800"}', {"a": "\\ud800"}),
    "nested to the cap": (b'{"a": ' + b"[" * 15 + b"]" * 15 + b"}", {"a": json.loads("[" * 15 + "]" * 15)}),
    "brackets in text": (b'{"a": "' + b"[" * 50 + b'\\""}', {"a": "[" * 50 + '"'}),
    "underflow": (b'{"a": 1e-400}', {"a": 0.0}),
}

REFUSED: dict[str, bytes] = {
    "empty": b"",
    "white space only": b"  ",
    "text": b"hello",
    "number": b"5",
    "string": b'"x"',
    "null": b"null",
    "array of numbers": b"[1, 2]",
    "array with one that is no object": b'[{"a": 1}, 2]',
    "NaN": b'{"a": NaN}',
    "Infinity": b'{"a": Infinity}',
    "-Infinity": b'{"a": -Infinity}',
    "NaN where nobody reads": b'{"other": NaN}',
    "1e400": b'{"a": 1e400}',
    "whole number too large for a float, with a point": b'{"a": ' + b"1" * 400 + b".0}",
    "5,000 digits": b'{"a": ' + b"1" * 5_000 + b"}",
    "100,000 brackets": b"[" * 100_000,
    "100,000 balanced brackets": b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "nested one above the cap": b'{"a": ' + b"[" * 16 + b"]" * 16 + b"}",
    "nested where nobody reads": b'{"other": ' + b'{"x": ' * 16 + b"1" + b"}" * 17,
    "invalid UTF-8": b'{"a": "\xff"}',
    "invalid UTF-8 in a key": b'{"\xff": 1}',
    "invalid UTF-8 where nobody reads": b'{"other": "\xff"}',
    "encoded surrogate": b'{"a": "\xed\xa0\x80"}',
    "lone high surrogate": b'{"a": "\\ud800"}',
    "lone low surrogate": b'{"a": "\\udc00"}',
    "two high surrogates": b'{"a": "\\ud800\\ud800"}',
    "surrogate after an escaped backslash": b'{"a": "\\\\\\ud800"}',
    "lone surrogate where nobody reads": b'{"other": "\\uD800", "a": 1}',
    "lone surrogate under a duplicate key": b'{"a": "\\ud800", "a": 1}',
    "byte order mark": b"\xef\xbb\xbf{}",
    "trailing text": b"{} x",
    "two objects": b'{"a": 1}{"a": 2}',
    "two objects in lines": b'{"a": 1}\n{"a": 2}',
    "cut off": b'{"a": 1',
    "trailing comma": b'{"a": 1,}',
    "single quotes": b"{'a': 1}",
    "comment": b'{"a": 1} // no',
    "leading zero": b'{"a": 01}',
    "no digit after the point": b'{"a": 1.}',
    "plus sign": b'{"a": +1}',
    "hexadecimal": b'{"a": 0x1}',
    "control character": b'{"a": "\x01"}',
    "bad escape": b'{"a": "\\x41"}',
    "form feed": b"\x0c{}",
    "too long": b'{"a": "' + b"x" * 300_000 + b'"}',
}


def decoder(parser: str, columns: frozenset[str] | None) -> JsonDecoder:
    return JsonDecoder(columns, CodecOptions(bytes_max=250_000, depth_max=16), PARSERS[parser])


def as_dict(row: Any) -> dict[str, Any]:
    """A row object as the dict it stands for, NULLs left out."""
    if isinstance(row, dict):
        return {column: value for column, value in row.items() if value is not None and column in COLUMNS}
    values = {column: getattr(row, name) for column, name in row.__columns__.items()}
    return {column: value for column, value in values.items() if value is not None}


@pytest.mark.parametrize("columns", [COLUMNS, None], ids=["columns", "whole"])
@pytest.mark.parametrize("parser", PARSERS)
@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name: str, parser: str, columns: frozenset[str] | None) -> None:
    payload, expected = ACCEPTED[name]
    rows, bad = decoder(parser, columns).decode_many([payload])
    assert bad == []
    wanted = {column: value for column, value in expected.items() if value is not None}
    assert [as_dict(row) for row in rows] == [wanted]
    for column, value in wanted.items():
        assert type(as_dict(rows[0])[column]) is type(value)
        assert not isinstance(value, float) or math.copysign(1, as_dict(rows[0])[column]) == math.copysign(
            1, value
        )


@pytest.mark.parametrize("columns", [COLUMNS, None], ids=["columns", "whole"])
@pytest.mark.parametrize("parser", PARSERS)
@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, parser: str, columns: frozenset[str] | None) -> None:
    """A bad payload is told with its place, and takes no other with it."""
    rows, bad = decoder(parser, columns).decode_many([b'{"a": 1}', REFUSED[name], b'{"a": 2}'])
    assert [as_dict(row) for row in rows] == [{"a": 1}, {"a": 2}]
    assert [index for index, _ in bad] == [1]
    assert 0 < len(bad[0][1]) <= 200


@pytest.mark.parametrize("payload", [b'{"other": 1e400}', b'{"other": ' + b"1" * 5_000 + b"}"])
def test_a_number_out_of_range_that_nobody_reads(payload: bytes) -> None:
    """The one difference: the standard library cannot skip, and may refuse more, never less."""
    assert decoder("msgspec", COLUMNS).decode_many([payload])[1] == []
    assert len(decoder("standard library", COLUMNS).decode_many([payload])[1]) == 1
    assert len(decoder("msgspec", None).decode_many([payload])[1]) == 1


@pytest.mark.parametrize("parser", PARSERS)
def test_an_array_of_objects_is_several_rows(parser: str) -> None:
    payloads = [b'{"a": 1}', b' [{"a": 2}, {"a": 3}]', b"[]", b'{"a": 4}']
    rows, bad = decoder(parser, frozenset({"a"})).decode_many(payloads)
    assert [row.a for row in rows] == [1, 2, 3, 4]
    assert bad == []


@pytest.mark.parametrize("parser", PARSERS)
@pytest.mark.parametrize("columns", [frozenset({"a", "$meta"}), None], ids=["columns", "whole"])
def test_meta_comes_from_the_source_only(parser: str, columns: frozenset[str] | None) -> None:
    payloads = [b'{"a": 1, "$meta": "forged"}', b"bad", b'[{"a": 2}, {"a": 3, "$meta": 9}]', b'{"a": 4}']
    metas = [{"topic": str(number)} for number in range(4)]

    def meta(row: Any) -> Any:
        return row.get("$meta") if isinstance(row, dict) else getattr(row, row.__columns__["$meta"])

    rows, bad = decoder(parser, columns).decode_many(payloads, metas)
    assert [meta(row) for row in rows] == [{"topic": "0"}, {"topic": "2"}, {"topic": "2"}, {"topic": "3"}]
    assert [index for index, _ in bad] == [1]
    rows, _ = decoder(parser, columns).decode_many(payloads)
    assert [meta(row) for row in rows] == [None] * 4


documents = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3)
    ),
    max_leaves=8,
)
good = documents.map(lambda value: json.dumps(value).encode())
damaged = st.tuples(good, st.integers(0, 40), st.binary(max_size=2)).map(
    lambda t: t[0][: t[1]] + t[2] + t[0][t[1] :]
)


@given(st.lists(good | damaged | st.binary(max_size=12), max_size=8), st.booleans())
def test_both_parsers_agree_and_batches_do_not_matter(payloads: list[bytes], whole: bool) -> None:
    columns = None if whole else frozenset({"a", "b"})
    fast, strict = decoder("msgspec", columns), decoder("standard library", columns)
    rows, bad = fast.decode_many(payloads)
    single = [fast.decode_many([payload]) for payload in payloads]
    assert [as_dict(row) for row in rows] == [as_dict(row) for part, _ in single for row in part]
    assert [index for index, _ in bad] == [index for index, (_, part) in enumerate(single) if part]
    other, other_bad = strict.decode_many(payloads)
    out_of_range_unread = not whole and any(b"e" in payload or b"E" in payload for payload in payloads)
    if not out_of_range_unread:
        assert [as_dict(row) for row in other] == [as_dict(row) for row in rows]
        assert [index for index, _ in other_bad] == [index for index, _ in bad]


def test_depth_is_counted_outside_text_and_in_linear_time() -> None:
    assert not depth_exceeds(b'{"a": "[[[[[["}', 3)
    assert depth_exceeds(b'{"a": "\\"", "b": [[[', 3)
    assert not depth_exceeds(b'["' + b'\\"' * 500_000 + b"[[[[", 3)
    assert not depth_exceeds(b"[]" * 1_000, 3)
    assert not depth_exceeds(b'["' + rb"\\" + b'", {}, "[[[["]', 2), (
        "the backslash does not escape the quotation mark"
    )


def test_a_long_payload_is_checked_as_a_short_one_is() -> None:
    decoder = JsonDecoder(frozenset(("n",)), CodecOptions(depth_max=4))
    long, deep = b'"pad": "' + b"[" * 20_000 + b'"', b"[[[[1]]]]"
    rows, bad = decoder.decode_many([b'{"n": 1, %s}' % long, b'{"n": %s, %s}' % (deep, long), b'{"n": 3}'])
    assert [as_dict(row) for row in rows] == [{"n": 1}, {"n": 3}]
    assert bad == [(1, "nested deeper than the 4 levels allowed")]


def test_reasons_are_sentences_about_the_message() -> None:
    rows, bad = decoder("msgspec", None).decode_many([b"", b'"x"', b"{"])
    assert rows == []
    assert [reason for _, reason in bad] == [
        "the payload is empty",
        "JSON cannot be used: Expected `object`, got `str`",
        "JSON cannot be used: Input data was truncated",
    ]
