"""Declared types hold at intake: a message whose value does not fit is one dead letter,
with column and value."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from edge.deploy.feeds import feeds
from edge.deploy.row_shapes import struct_columns
from edge.intake.streams import Decoded, StreamTable
from rules.compile import compile_rules
from rules.compiled import Compiled
from rules.loader import load_paths
from sql.rows import as_dict

STREAM = """\
streams:
  - name: m
    datasource: plant/+
    columns:
      machine: topic(2)
      dev: string
      n: bigint
      temp: float
      run: boolean
      tags: array(float)
      at: {type: struct(x float)}
      unit: {type: string, default: C}
      unread: bigint
MORE
rules:
  - {id: r, sql: "SELECT", actions: [{nop: {}}]}
"""

SOME = "machine, dev, n, temp, run"


def compiled(tmp_path: Any, columns: str, more: str = "") -> Compiled:
    path = tmp_path / "r.yaml"
    path.write_text(STREAM.replace("SELECT", f"SELECT {columns} FROM m").replace("MORE", more))
    found = compile_rules(load_paths([path]))
    assert [str(problem) for problem in found.problems if problem.is_error] == []
    return found


def table(found: Compiled) -> StreamTable:
    structs = struct_columns(found.catalog, found.rules.values())
    plans = [rule.plan for rule in found.rules.values()]
    return StreamTable(feeds(found.catalog, plans, 1_000_000, structs=structs).decoded)


def decode(streams: StreamTable, payloads: Sequence[Any]) -> Decoded:
    messages = [
        ("plant/a", payload if isinstance(payload, bytes) else json.dumps(payload).encode(), None, 0)
        for payload in payloads
    ]
    return streams.decode(messages)


def values(decoded: Decoded) -> list[dict[str, Any]]:
    return [{k: v for k, v in as_dict(row).items() if v is not None} for row in decoded.rows.get("m", [])]


@pytest.mark.parametrize("columns", [SOME, "*"], ids=["structs", "dicts"])
@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        ({"dev": 7}, "column 'dev' of stream 'm' must be a string, not bigint 7"),
        ({"n": "7"}, "column 'n' of stream 'm' must be a bigint, not string '7'"),
        ({"n": 7.5}, "column 'n' of stream 'm' must be a bigint, not float 7.5"),
        ({"n": True}, "column 'n' of stream 'm' must be a bigint, not boolean True"),
        ({"temp": "warm"}, "column 'temp' of stream 'm' must be a float, not string 'warm'"),
        ({"temp": False}, "column 'temp' of stream 'm' must be a float, not boolean False"),
        ({"run": 1}, "column 'run' of stream 'm' must be a boolean, not bigint 1"),
        ([{"n": 1}, {"n": "x"}], "column 'n' of stream 'm' must be a bigint, not string 'x'"),
    ],
)
def test_a_value_of_another_type(tmp_path: Any, columns: str, payload: Any, reason: str) -> None:
    streams = table(compiled(tmp_path, columns))
    found = decode(streams, [{"dev": "x"}, payload, {"dev": "y"}])
    assert [(refused.message[0], refused.message[3]) for refused in found.bad] == [("plant/a", reason)]
    assert [row["dev"] for row in values(found)] == ["x", "y"]


@pytest.mark.parametrize("columns", [SOME, f"{SOME}, tags", "*"], ids=["structs", "checked after", "dicts"])
def test_values_that_may_stand_for_the_type(tmp_path: Any, columns: str) -> None:
    sent = {"dev": "x", "n": 23.0, "temp": 5, "run": True, "machine": 5}
    (row,) = values(decode(table(compiled(tmp_path, columns)), [sent]))
    assert {name: row[name] for name in sent} == {**sent, "machine": "a"}
    assert type(row["n"]) is int
    assert type(row["temp"]) is int
    big = 10**30
    assert values(decode(table(compiled(tmp_path, columns)), [{"n": big}]))[0]["n"] == big


def test_arrays_structs_and_defaults(tmp_path: Any) -> None:
    streams = table(compiled(tmp_path, "tags, at, unit"))
    sent: list[dict[str, Any]] = [
        {"tags": [1, "x"]},
        {"at": {"x": "y"}},
        {"tags": [1.5, None], "at": {"x": 1, "z": "left alone"}},
    ]
    found = decode(streams, sent)
    assert [refused.message[3] for refused in found.bad] == [
        "column 'tags[1]' of stream 'm' must be a float, not string 'x'",
        "column 'at.x' of stream 'm' must be a float, not string 'y'",
    ]
    assert values(found) == [{**sent[2], "unit": "C"}]


def test_columns_that_no_rule_reads_are_not_checked(tmp_path: Any) -> None:
    """They would cost every message, and every event that a window keeps."""
    assert decode(table(compiled(tmp_path, "dev")), [{"dev": "a", "unread": "x"}]).bad == []
    assert len(decode(table(compiled(tmp_path, "dev, unread")), [{"dev": "a", "unread": "x"}]).bad) == 1


def test_the_old_way(tmp_path: Any) -> None:
    found = decode(table(compiled(tmp_path, SOME, "    strictValidation: false")), [{"temp": "warm"}])
    assert found.bad == []
    assert values(found) == [{"machine": "a", "temp": "warm"}]


def test_text_that_only_looks_like_a_value(tmp_path: Any) -> None:
    """A web form holds text: it becomes the declared type, or is refused."""
    streams = table(compiled(tmp_path, SOME, "    format: urlencoded"))
    found = decode(streams, [b"dev=7&n=5&temp=21.5&run=true", b"dev=a&temp=warm"])
    assert values(found) == [{"machine": "a", "dev": "7", "n": 5, "temp": 21.5, "run": True}]
    assert [refused.message[3] for refused in found.bad] == ["column 'temp' is declared float, got 'warm'"]
