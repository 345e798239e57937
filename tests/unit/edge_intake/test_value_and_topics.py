"""Payloads that are one bare value, and columns that are parts of the topic."""

from __future__ import annotations

from typing import Any

import pytest

from edge.base.message import Message
from edge.intake.codecs import CodecError, CodecOptions, decoder_for
from edge.intake.stream_decoder import StreamSpec
from edge.intake.streams import StreamTable
from sql.rows import as_dict


def decoded(payload: bytes, declared: str | None = None) -> Any:
    """The value of a payload, or the reason for refusing it."""
    options = CodecOptions() if declared is None else CodecOptions(fields=("v",), types={"v": declared})
    rows, bad = decoder_for("value", None, options).decode_many([payload])
    return next(iter(rows[0].values())) if rows else bad[0][1]


@pytest.mark.parametrize(("payload", "declared", "value"), [
    (b"23.5", None, 23.5), (b" 7\n", None, 7), (b"ON", None, "ON"), (b"true", None, True),
    (b"-1e3", None, -1000.0), (b"NaN", None, "NaN"), (b"23.5", "float", 23.5), (b"23", "float", 23),
    (b"23.0", "bigint", 23), (b"ON", "boolean", True), (b"0", "boolean", False), (b"007", "string", "007"),
    (b"+5", "bigint", 5), (b"23.5", "bigint", "column 'v' is declared bigint, got '23.5'"),
    (b"hot", "float", "column 'v' is declared float, got 'hot'"),
    (b"maybe", "boolean", "column 'v' is declared boolean, got 'maybe'"),
    (b"", "float", "the payload is empty"), (b"\xff", None, "not UTF-8: invalid start byte at byte 0"),
])  # fmt: skip
def test_a_bare_value(payload: bytes, declared: str | None, value: Any) -> None:
    found = decoded(payload, declared)
    assert (found, type(found)) == (value, type(value))


def test_one_column_only() -> None:
    with pytest.raises(CodecError, match="format value has one column, not 2: a, b"):
        decoder_for("value", None, CodecOptions(fields=("a", "b")))


MESSAGES: list[Message] = [
    ("plant/h1/m1", b'{"t": 1}', None, 0),
    ("plant/h1/m2", b"rubbish", None, 0),
    ("plant/h2/m3", b'[{"t": 2}, {"t": 3, "machine": "forged"}]', None, 0),
    ("plant", b'{"t": 4}', None, 0),
]


@pytest.mark.parametrize("columns", [None, frozenset({"t", "hall", "machine"})])
def test_parts_of_the_topic_are_columns(columns: frozenset[str] | None) -> None:
    """Arrays and refused payloads between them; a topic with fewer parts gives NULL; a
    payload cannot forge them."""
    table = StreamTable([StreamSpec("s", "#", columns=columns, parts={"hall": 2, "machine": 3})])
    found = table.decode(MESSAGES)
    rows = [{name: as_dict(row).get(name) for name in ("t", "hall", "machine")} for row in found.rows["s"]]
    assert rows == [
        {"t": 1, "hall": "h1", "machine": "m1"},
        {"t": 2, "hall": "h2", "machine": "m3"},
        {"t": 3, "hall": "h2", "machine": "m3"},
        {"t": 4, "hall": None, "machine": None},
    ]
    assert [refused.message[0] for refused in found.bad] == ["plant/h1/m2"]


def test_columns_that_no_rule_reads_are_not_filled() -> None:
    table = StreamTable(
        [StreamSpec("s", "#", columns=frozenset({"machine"}), parts={"hall": 2, "machine": 3})]
    )
    assert [as_dict(row) for row in table.decode(MESSAGES[:1]).rows["s"]] == [{"machine": "m1"}]
