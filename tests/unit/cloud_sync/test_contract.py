"""The job's reading of uploaded files: what real uploads hold, and that no bytes at all can stop it."""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import random
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud_sync.names import manifest_name
from cloud_sync.records import SpooledRow
from cloud_sync.spark.contract.fields import Bad
from cloud_sync.spark.contract.uploaded_file import read_file
from cloud_sync.spark.exact import nearest, total, units
from cloud_sync.upload_files import form_file, manifest

START_MS = 1_763_683_200_000
BODY: dict[str, Any] = {
    "windows": [["1m", START_MS, START_MS + 60_000], ["1d", START_MS, START_MS + 86_400_000]],
    "window_start": START_MS + 10_000,
    "window_end": START_MS + 20_000,
    "keys": {"dev": "ä", "line": 1},
    "values": [
        {"as": "n", "merge": "count", "type": "int", "int": 2},
        {"as": "t", "merge": "avg", "type": "float", "float": 41.5, "count": 2},
        {"as": "lo", "merge": "min", "type": "float", "float": None},
    ],
}


def upload(bodies: list[bytes], **announced: Any) -> tuple[str, bytes, bytes]:
    """Path of the manifest, manifest and file, as an uploader writes them; `announced` changes the
    manifest."""
    rows = [SpooledRow(seq, "hot", "2025-11-21", 0, body, 0) for seq, body in enumerate(bodies, 3)]
    planned, content = form_file(rows, "gw1", "abc")
    fields = json.loads(manifest(planned, "gw1", "abc")) | announced
    return manifest_name(planned.name), json.dumps(fields).encode(), content


def repacked(path: str, announcement: bytes, text: bytes) -> tuple[str, bytes, bytes]:
    """Another content that its manifest announces well: size, hash and number of lines are right."""
    content = gzip.compress(text)
    fields = json.loads(announcement)
    fields |= {
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "rows": text.count(b"\n"),
    }
    return path, json.dumps(fields).encode(), content


def test_an_upload_is_read_as_it_was_written() -> None:
    found, records = read_file(*upload([json.dumps(BODY).encode()] * 2))
    assert (found.gateway, found.rule, found.rows, [record.seq for record in records]) == (
        "gw1",
        "hot",
        2,
        [3, 4],
    )
    first = records[0]
    assert first.windows == (("1m", START_MS, START_MS + 60_000), ("1d", START_MS, START_MS + 86_400_000))
    assert first.keys == '{"dev":"ä","line":1}'
    assert [value[:6] for value in first.values] == [
        ("n", "count", "int", 2, None, None),
        ("t", "avg", "float", None, 41.5, 2),
        ("lo", "min", "float", None, None, None),
    ]
    assert first.digest == records[1].digest


def test_a_record_may_name_its_revision_and_its_rule() -> None:
    bodies = [
        BODY,
        BODY | {"rule_hash": "0a" * 8},
        BODY | {"revision": 7},
        BODY | {"revision": 7, "retracted": True},
    ]
    _, records = read_file(*upload([json.dumps(body).encode() for body in bodies]))
    told = [(record.revision, record.retracted, record.rule_hash) for record in records]
    assert told == [(0, False, ""), (0, False, "0a" * 8), (7, False, ""), (7, True, "")]
    assert len({record.digest for record in records}) == 3, "the rule's hash is not what a record says"


def test_version_1_stays_readable() -> None:
    body = {name: value for name, value in BODY.items() if name != "windows"} | {"window": 90_000}
    path, announcement, content = upload([json.dumps(body).encode()])
    fields = json.loads(announcement) | {"version": 1}
    fields["name"] = fields["name"].replace("v2/", "v1/")
    _, (record,) = read_file(path.replace("v2-", "v1-"), json.dumps(fields).encode(), content)
    begin = (START_MS + 10_000) // 90_000 * 90_000
    assert record.windows == (("1m30s", begin, begin + 90_000),)


def changed(**changes: Any) -> bytes:
    return json.dumps(BODY | changes).encode()


VALUE = {"as": "n", "merge": "sum", "type": "float"}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (changed(windows=[["1m", 0, 60_000]]), "does not hold the record's start"),
        (changed(windows=[]), "no list of levels"),
        (changed(windows=[BODY["windows"][0]] * 2), "a level twice"),
        (changed(window_start=2**63 - 1), "'window_start' is no whole number"),
        (changed(window_end=START_MS), "lies before"),
        (changed(keys=None), "no object of keys"),
        (changed(keys={"a": {"b": 1}}), "is no number"),
        (changed(keys={"a": "\ud800"}), "half a character"),
        (changed(values=[VALUE | {"float": True}]), "is no number"),
        (changed(values=[VALUE | {"float": "1"}]), "is no number"),
        (changed(values=[VALUE | {"merge": "median"}]), "not in the contract"),
        (changed(values=[VALUE, VALUE]), "a column twice"),
        (changed(values=[{"as": "n", "merge": "count", "type": "int", "int": -1}]), "below 0"),
        (changed(values=[{"as": "n", "merge": "sum", "type": "int", "int": 2**63}]), "beyond 64 bits"),
        (changed(values=[{"as": "n", "merge": "sum", "type": "int", "int": 1.5}]), "with a fraction"),
        (changed().replace(b"41.5", b"NaN"), "no JSON"),
        (changed().replace(b"41.5", b"1e999"), "beyond the range of a float"),
        (changed(values=[VALUE | {"merge": "stddev", "float": 1.0, "count": 1}]), "no list of two numbers"),
        (
            changed(values=[VALUE | {"merge": "var_pop", "float": 1.0, "count": 0}]),
            "'count' is no whole number from 1",
        ),
        (changed(values=[{"as": "n", "merge": "stddev", "type": "int"}]), "merges as 'stddev' of 'int'"),
        (changed(revision=-1), "'revision' is no whole number"),
        (changed(revision=2**63), "'revision' is no whole number"),
        (changed(revision=1, retracted=1), "'retracted' is no boolean"),
        (changed(retracted=True), "needs a 'revision'"),
        (changed(rule_hash="g" * 16), "16 hexadecimal digits"),
        (b"[]" + b"[" * 100_000, "no JSON"),
    ],
)
def test_a_line_outside_the_contract_is_named(body: bytes, reason: str) -> None:
    if body.startswith(b"["):  # no row of a spool, but bytes that a gateway can upload
        path, announcement, _ = upload([changed()])
        file = repacked(path, announcement, body + b"\n")
    else:
        file = upload([body])
    with pytest.raises(Bad, match=f"^line 1 is no record: .*{reason}"):
        read_file(*file)


@pytest.mark.parametrize("window", [2**63 - 1, 2**63, 2**62, 0, -1, True, "1m", 1e3, None])
def test_no_window_of_version_1_can_stop_the_job(window: Any) -> None:
    body = {name: value for name, value in BODY.items() if name != "windows"} | {"window": window}
    with pytest.raises(Bad, match="'window' is no whole number"):
        read_file(*upload([json.dumps(body).encode()]))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"version": 3}, "has version 3"),
        ({"sha256": "0" * 64}, "sha256 is"),
        ({"bytes": 1}, "the manifest says 1"),
        ({"rows": 7}, "1 records, the manifest says 7"),
        ({"gateway": "gw2"}, "not its file's place"),
        ({"spool": "other"}, "another gateway, spool or rule"),
        ({"last_seq": 2}, "announces no rows"),
        ({"first_seq": 1, "last_seq": 2}, "out of the range"),
        ({"name": "v2/../../x.jsonl.gz"}, "not its file's place"),
        ({"name": None}, "no manifest"),
        ({"rule": "ä" * 60}, "longer than 200 characters as a folder"),
    ],
)
def test_a_manifest_that_does_not_fit_is_named(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(Bad, match=reason):
        read_file(*upload([changed()], **change))


def test_missing_torn_and_packed_files_are_named() -> None:
    path, announcement, content = upload([changed()])
    for file, reason in (
        ((path, announcement, None), "the file is not there"),
        ((path, None, content), "no manifest"),
        (repacked(path, announcement, changed() + b"\n" + changed()), "does not end"),
    ):
        with pytest.raises(Bad, match=reason):
            read_file(*file)
    torn = content[:-9]
    fields = json.loads(announcement) | {"bytes": len(torn), "sha256": hashlib.sha256(torn).hexdigest()}
    with pytest.raises(Bad, match="gzip stream is torn"):
        read_file(path, json.dumps(fields).encode(), torn)


@given(st.data())
def test_mutated_files_count_as_they_are_or_not_at_all(data: st.DataObject) -> None:
    """Bytes of a well-announced file are changed at random: it is read, or Bad says why;
    nothing else happens."""
    path, announcement, content = upload([changed()] * 3)
    text = bytearray(gzip.decompress(content))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text) - 1))
        piece = data.draw(
            st.sampled_from([b"9", b"-", b"e99", b'"', b"}", b"\n", b"null", b"\xff", b"[", b"\\ud800"])
        )
        text[at : at + data.draw(st.integers(0, 3))] = piece
    try:
        _, records = read_file(*repacked(path, announcement, bytes(text)))
    except Bad:
        return
    for record in records:
        assert 0 <= record.windows[0].start <= record.window_start <= record.window_end < 2**48
        assert all(value.real is None or math.isfinite(value.real) for value in record.values)


FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(FLOATS, max_size=30))
def test_units_add_up_to_the_exact_sum_in_any_order(values: list[float]) -> None:
    bins: dict[int, int] = {}
    random.Random(1).shuffle(values)
    for value in values:
        number, count = units(value)
        assert abs(count) < 2**85
        bins[number] = bins.get(number, 0) + count
    exact = sum(map(Fraction, values), Fraction(0))
    assert Fraction(*total(bins.items())) == exact
    try:
        assert nearest(*total(bins.items())) == math.fsum(values)
    except OverflowError:
        assert math.isinf(nearest(*total(bins.items())))
