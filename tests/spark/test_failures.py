"""Paths that are none, files that cannot be read, a disk without room: one sentence each, with the remedy."""

from __future__ import annotations

import random
import resource
from pathlib import Path
from typing import Any

import pytest

from cloud_sync.spark import intake, job, view
from cloud_sync.spark.storage import LocalStorage
from edge.cli import main
from tests.spark.support import rows, run, upload

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("spark")]
RULES = """
streams: {plant: {columns: {dev: string, temp: float}, datasource: plant}}
rules:
  - {id: all, sql: SELECT temp FROM plant, actions: [{log: {}}]}
  - {id: mean, scope: fleet, sql: "SELECT avg(temp) AS t FROM plant GROUP BY dev, TUMBLINGWINDOW(ss, 10)"}
"""


def test_a_bucket_without_uploads_is_none(
    bucket: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    upload(bucket, "gw1", rows(random.Random(1), 3))
    (bucket.parent / "empty").mkdir()
    for name, found in (
        ("none", "is no folder"),
        ("empty", "holds no uploads"),
        (f"{bucket.name}/v2", "holds no uploads"),
    ):
        path = bucket.parent / name
        assert run(path, out)[0] == job.FAILED
        remedy = "give the path to which gateways upload (cloud.target)"
        assert capsys.readouterr().err == f"penstock cloud aggregate: {path} {found}; {remedy}\n"
    assert not out.exists()


def test_a_file_in_the_place_of_out_is_named(
    bucket: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    upload(bucket, "gw1", rows(random.Random(1), 3))
    out.touch()
    assert run(bucket, out)[0] == job.FAILED
    told = f"file exists: '{out}'; a file is where a folder has to be: give another path\n"
    assert capsys.readouterr().err == f"penstock cloud aggregate: {told}"


@pytest.mark.parametrize("verb", ["backfill", "stream"])
def test_raw_events_are_in_folders_of_gateways(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    """The bucket itself, above `v2-archive`, holds records and manifests beside raw events."""
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES, encoding="utf-8")
    (tmp_path / "bucket" / "v2-archive" / "gw=gw1").mkdir(parents=True)
    for name, found in (("none", "is no folder"), ("bucket", "has no folder gw=<gateway>")):
        path = tmp_path / name
        assert main(["cloud", verb, str(rules), str(path), str(tmp_path / "out")]) == job.FAILED
        told = f"{path} {found}; give the path of raw events, such as BUCKET/v2-archive\n"
        assert capsys.readouterr().err == f"penstock cloud {verb}: {told}"


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Hadoop says only that `Mkdirs` failed. Nobody can make a folder in /sys, not even root, as whom a test
    may run."""
    if not Path("/sys/kernel").exists():
        pytest.skip("there is no /sys")
    rules, raw = tmp_path / "rules.yaml", tmp_path / "raw" / "gw=gw1"
    rules.write_text(RULES, encoding="utf-8")
    raw.mkdir(parents=True)
    (raw / "1.jsonl").write_text('{"at":1,"stream":"plant","event":{"dev":"a","temp":1}}\n', encoding="utf-8")
    for verb in ("backfill", "stream"):
        assert main(["cloud", verb, str(rules), str(raw.parent), "/sys/out"]) == job.FAILED
        told = capsys.readouterr().err
        assert told.startswith(
            (
                f"penstock cloud {verb}: operation not permitted: '/sys/out",
                f"penstock cloud {verb}: permission denied: '/sys/out",
            )
        )
        assert told.endswith("; give the user of this job the right to it\n")


def test_a_file_that_cannot_be_read_is_not_a_missing_one(
    spark: Any, bucket: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark reads a file without the right to it as one that is gone. A test may run as root, which has every
    right: here the file goes when Spark has seen it and not read it."""
    (name,) = upload(bucket, "gw1", rows(random.Random(1), 3))
    read = intake.read

    def read_late(*arguments: Any) -> Any:
        found = read(*arguments)
        (bucket / name).rename(bucket.parent / "aside")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(intake, "read", read_late)
        assert run(bucket, out)[0] == job.QUARANTINED
    (found,) = view.quarantine(spark, str(out)).collect()
    assert found["reason"].startswith("the file is there and cannot be read; give the user of this job")
    (bucket.parent / "aside").rename(bucket / name)
    assert run(bucket, out)[1]["files"] == 1


def test_a_file_that_cannot_be_written_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    """The system refuses to write behind the bound of a file, as it does on a full disk."""
    bounds = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, bounds[1]))
    try:
        with pytest.raises(OSError, match=f"'{tmp_path}/version'"):
            LocalStorage(tmp_path).create("version", b" " * 2_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, bounds)
    assert list(tmp_path.iterdir()) == []
