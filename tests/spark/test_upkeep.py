"""The commands that change or show the fleet tables: where there are none, and where days were dropped;
control files through Hadoop."""

from __future__ import annotations

import random
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cloud_sync.declaration import CloudSettings
from cloud_sync.heartbeat import Pulse
from cloud_sync.names import arrival_name
from cloud_sync.schemas import Check
from cloud_sync.spark import maintenance, report, view
from cloud_sync.spark.intake import data_name
from cloud_sync.spark.storage import HadoopStorage, open_storage
from cloud_sync.spark.tables import Tables
from cloud_sync.spool import Spool
from cloud_sync.targets import open_target
from edge.cli import main
from tests.spark.support import DAY_MS, rows, run, upload
from tests.spark.test_schemas import FIRST, RULE, row
from tests.spark.test_schemas import upload as send_rows

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


@pytest.mark.parametrize(
    "command", [["compact"], ["retain", "--keep", "9d"], ["forget", "gw1"], ["report", "--html", "page.html"]]
)
def test_a_folder_without_fleet_tables_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    out = tmp_path / "mistyped"
    verb, *rest = command
    assert main(["cloud", verb, str(out), *rest]) == 1
    assert f"penstock cloud {verb}: {out} holds no fleet tables" in capsys.readouterr().err
    assert not out.exists(), "a lease would have made it"


def test_a_file_of_hadoop_is_there_whole_or_not_at_all(spark: Any, tmp_path: Path) -> None:
    """As on HDFS: a file is there from its first byte on. A folder in the place of a name is not replaced."""
    storage = HadoopStorage(spark, (tmp_path / "out").as_uri())
    seen: list[list[str]] = []
    write = storage._write

    def watched(name: str, content: bytes, *, overwrites: bool) -> None:
        write(name, content, overwrites=overwrites)
        seen.append([name for name in storage.names("_versions") if name.endswith(".json")])

    storage._write = watched  # type: ignore[method-assign]
    assert storage.create("_versions/1.json", b"one") and not storage.create("_versions/1.json", b"two")
    assert storage.create("_lease.json", b"")
    assert seen == [[], ["1.json"], ["1.json"]]
    assert storage.read("_versions/1.json") == b"one" and storage.names("_versions") == ["1.json"]
    (tmp_path / "out" / "file").touch()
    with pytest.raises(OSError, match="file/x"):
        storage.create("file/x", b"")


@pytest.mark.slow
def test_a_month_whose_first_days_were_dropped_is_not_made_from_the_others(
    spark: Any, bucket: Path, out: Path
) -> None:
    """A row on the 20th, one on the 21st; the 20th is dropped, and so the month. Neither a further row of the
    21st, nor a statement of it, nor a gateway that is forgotten makes a month of the rest."""
    declared = {"keys": ["dev"], "merge": {"n": "count"}, "window": ["1m", "1mo"]}
    settings = CloudSettings.model_validate(declared)
    day_ms = 86_400_000

    def send(gateway: str, at_ms: int, *, restates: bool = False) -> None:
        row = {"window_start": at_ms, "window_end": at_ms + 10_000, "dev": "a", "n": 1}
        upload(bucket, gateway, [row], settings=settings.model_copy(update={"restates": restates}))
        assert run(bucket, out)[0] == 0

    def counts(level: str) -> list[int]:
        found = view.fleet(spark, str(out), "hot", level).orderBy("window_start").collect()
        return [int(row["n"]) for row in found]

    send("gw1", DAY_MS - day_ms)
    send("gw2", DAY_MS)
    assert counts("1mo") == [2]
    maintenance.retain(spark, str(out), 1, lambda: DAY_MS)
    assert (counts("1m"), counts("1mo")) == ([1], [])
    send("gw2", DAY_MS + 60_000)
    assert (counts("1m"), counts("1mo")) == ([1, 1], [])
    send("gw3", DAY_MS + 120_000, restates=True)
    assert (counts("1m"), counts("1mo")) == ([1, 1, 1], [])
    assert maintenance.forget(spark, str(out), maintenance.Forgotten("gw3"), lambda: DAY_MS) == 1
    assert (counts("1m"), counts("1mo")) == ([1, 1], [])


@pytest.mark.slow
def test_a_forgotten_gateway_is_in_no_list(
    spark: Any, bucket: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It broke a check, sent a heartbeat and is stale. Its file, announced once more, brings nothing back;
    a new one does."""
    fresh = FIRST._replace(expect=(*FIRST.expect[:3], Check(None, "fail", freshness_ms=60_000)))
    (manifest,) = send_rows(bucket, "gw1", row(fresh, 1), row(fresh, 100, 0, 1))
    send_rows(bucket, "gw2", row(fresh, 2))
    with closing(Spool(bucket.parent / "gw1" / "spool.db", "gw1")) as spool:
        Pulse(spool, open_target(str(bucket)), 1).beat(DAY_MS)
    late: dict[str, Any] = {"now_ms": lambda: DAY_MS + 70_001}
    code, metrics = run(bucket, out, **late)
    assert (code, metrics["stale"]) == (3, [f"gw1 {RULE}", f"gw2 {RULE}"])

    assert main(["cloud", "forget", str(out), "gw1"]) == 0
    assert capsys.readouterr().out == "1 records forgotten\n"
    versions = sorted(path.name for path in (out / "_versions").iterdir())
    assert main(["cloud", "forget", str(out), "gw1"]) == 0
    assert capsys.readouterr().out == "0 records forgotten\n"
    assert sorted(path.name for path in (out / "_versions").iterdir()) == versions
    again = bucket / arrival_name(data_name(manifest), DAY_MS + 60 * 60_000)
    again.parent.mkdir(parents=True)
    again.write_bytes((bucket / arrival_name(data_name(manifest), DAY_MS)).read_bytes())
    code, metrics = run(bucket, out, **late)
    assert (code, metrics["rows"], metrics["stale"]) == (3, 0, [f"gw2 {RULE}"])
    assert [found["gateway"] for found in view.gateways(spark, str(out)).collect()] == ["gw2"]
    assert view.checks(spark, str(out)).count() == view.quarantine(spark, str(out)).count() == 0
    assert "gw1" not in report.page(spark, str(out))

    send_rows(bucket, "gw1", row(fresh, 4))
    assert run(bucket, out, **late)[1]["rows"] == 1
    (back,) = view.gateways(spark, str(out)).where("gateway = 'gw1'").collect()
    assert (back["rows"], back["held"], back["duplicates"], back["missing"]) == (1, 0, 0, 0)


@pytest.mark.slow
def test_what_a_killed_first_run_has_left_goes_with_the_next_one(spark: Any, bucket: Path, out: Path) -> None:
    """It was killed before its first commit: all parts are there, and no version."""
    upload(bucket, "gw1", rows(random.Random(1), 3))
    assert run(bucket, out)[0] == 0
    shutil.rmtree(out / "_versions")
    left = sorted(path for path in out.glob("*/run=*"))
    assert run(bucket, out)[1]["rows"] == 3
    assert len(left) == 5 and not any(path.exists() for path in left)
    current = Tables(spark, open_storage(spark, str(out))).current()
    found = {path.relative_to(out).as_posix() for path in out.glob("*/run=*")}
    assert found == {"/".join(path.split("/")[:2]) for path in current.paths()}


@pytest.mark.slow
def test_an_unknown_gateway_cannot_be_forgotten(
    bucket: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    upload(bucket, "gw1", rows(random.Random(1), 1))
    run(bucket, out)
    versions = sorted((out / "_versions").iterdir())
    assert main(["cloud", "forget", str(out), "gw11"]) == 1
    assert f"{out} holds nothing of a gateway gw11; see gateways and rules with" in capsys.readouterr().err
    assert sorted((out / "_versions").iterdir()) == versions
