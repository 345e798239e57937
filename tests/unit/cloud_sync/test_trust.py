"""Who may upload in a gateway's name, and which columns never leave it in clear."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cloud_sync.names import arrival_name, manifest_name
from cloud_sync.records import Record
from cloud_sync.signing import read_keys, signature
from cloud_sync.sink import RecordMaker
from cloud_sync.spark.contract.fields import Bad
from cloud_sync.spark.contract.uploaded_file import read_file
from cloud_sync.spool import Spool
from cloud_sync.uploader import Uploader, UploadSettings
from edge.cli import main
from tests.unit.cloud_sync.support import NOW_MS, MemoryTarget
from tests.unit.cloud_sync.test_contract import BODY
from tests.unit.cloud_sync.test_declaration import WINDOW, compiled, settings

KEY, OTHER = "0123456789abcdef", "fedcba9876543210"
SQL = f"SELECT dev, note, count(*) AS c, {WINDOW} FROM plant GROUP BY dev, note, TUMBLINGWINDOW(ss, 10)"


def uploaded(tmp_path: Path, key: str, target: MemoryTarget) -> tuple[str, bytes, bytes]:
    """Path of the manifest, manifest and file of one row."""
    spool = Spool(tmp_path / "spool.db", "gw1")
    try:
        spool.append([Record("hot", "2025-11-21", json.dumps(BODY).encode())], NOW_MS)
        spool.commit(NOW_MS)
        Uploader(spool, target, UploadSettings(sign_key=key)).drain(NOW_MS)
    finally:
        spool.close()
    (name,) = target.names("v2")
    return manifest_name(name), target.files[arrival_name(name, NOW_MS)], target.files[name]


def test_only_what_its_gateway_signed_counts(tmp_path: Path) -> None:
    path, announcement, content = uploaded(tmp_path, KEY, MemoryTarget())
    assert len(read_file(path, announcement, content, {"gw1": KEY})[1]) == 1
    assert len(read_file(path, announcement, content)[1]) == 1, "without keys nothing is asked for"
    fields = json.loads(announcement)
    forged = json.dumps(fields | {"rows": 2}).encode()
    unsigned = json.dumps({name: value for name, value in fields.items() if name != "signature"}).encode()
    for wrong, keys, reason in (
        (announcement, {"gw1": OTHER}, "bears another signature"),
        (forged, {"gw1": KEY}, "bears another signature"),
        (unsigned, {"gw1": KEY}, "is not signed"),
        (announcement, {"gw2": KEY}, "there is no key of its gateway"),
    ):
        with pytest.raises(Bad, match=reason):
            read_file(path, wrong, content, keys)


def test_a_key_that_changed_between_upload_and_repetition_is_no_conflict(tmp_path: Path) -> None:
    target = MemoryTarget()
    _, announcement, _ = uploaded(tmp_path, KEY, target)
    (place,) = target.names("v2-arrivals")
    spool = Spool(tmp_path / "again.db", "gw1")
    try:
        uploader = Uploader(spool, target, UploadSettings(sign_key=OTHER))
        fields = json.loads(announcement)
        fields["signature"] = signature(fields, OTHER)
        uploader._put(place, json.dumps(fields).encode())
    finally:
        spool.close()
    assert target.files[place] == announcement


@pytest.mark.parametrize(
    ("text", "reason"),
    [("[]", "no JSON object"), ('{"gw1": "short"}', "key of gw1"), ("?", "Expecting value")],
)
def test_a_file_that_holds_no_keys_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_keys(text)


def test_a_file_of_keys_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["cloud", "aggregate", "bucket", "out", "--keys", "no.json"])
    assert capsys.readouterr().err.endswith("argument --keys: no.json: no such file or directory\n")


def test_hashed_keys_leave_as_their_hash_and_secret_columns_not_at_all() -> None:
    found = settings(SQL, f"{{window: 1m, hashed: [dev], hashKey: {KEY}, secret: [note]}}")
    assert found.keys == ["dev"] and KEY not in repr(found)
    row: dict[str, Any] = {"dev": "pump 7", "note": "Jane", "c": 1, "began": NOW_MS, "ended": NOW_MS + 10_000}
    body = RecordMaker(found, "r").record(row, 0).body
    assert b"pump" not in body and b"Jane" not in body
    sent = json.loads(body)["keys"]["dev"]
    assert (
        len(sent) == 32
        and json.loads(RecordMaker(found, "r").record(row | {"c": 2}, 0).body)["keys"]["dev"] == sent
    )
    others = [RecordMaker(found, "r").record(row | {"dev": value}, 0).body for value in (7, "7", None)]
    assert len({json.loads(other)["keys"]["dev"] for other in others}) == 3
    assert json.loads(others[2])["keys"]["dev"] is None


@pytest.mark.parametrize(
    ("cloud", "message"),
    [
        ("{window: 1m, hashed: [dev]}", "needs a 'hashKey'"),
        ("{window: 1m, hashed: [dev], hashKey: short}", "needs a 'hashKey'"),
        (f"{{window: 1m, hashed: [c], hashKey: {KEY}}}", "column 'c' is no key"),
        (f"{{window: 1m, hashed: [device], hashKey: {KEY}}}", "no column 'device'"),
        ("{window: 1m, keys: [dev], secret: [dev]}", "'secret' names columns that are sent: dev"),
        (
            "{window: 1m, keys: [dev], merge: {c: count}, secret: [c]}",
            "'secret' names columns that are sent: c",
        ),
    ],
)
def test_what_would_not_hide_is_refused(cloud: str, message: str) -> None:
    problems = compiled(SQL, cloud).problems
    assert any(message in problem.message for problem in problems), [problem.message for problem in problems]
