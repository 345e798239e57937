"""Fleet tables of which a file is gone."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from cloud_sync.spark import job
from tests.spark.support import rows, run, upload

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("spark")]


@pytest.mark.parametrize("table", ["fleet", "spools"])
def test_a_part_without_its_file_is_no_part_without_rows(
    spark: Any, bucket: Path, out: Path, capsys: pytest.CaptureFixture[str], table: str
) -> None:
    """Spark reads an empty folder as no rows: the run would make the windows anew from the new file alone."""
    upload(bucket, "gw1", rows(random.Random(1), 3, minutes=1))
    assert run(bucket, out)[0] == job.OK
    (kept,) = (out / table).rglob("*.parquet")
    content = kept.read_bytes()
    kept.unlink()
    upload(bucket, "gw1", rows(random.Random(2), 3, minutes=1))
    assert run(bucket, out)[0] == job.FAILED
    failure = capsys.readouterr().err
    assert f"{kept.parent} has no file any more; restore the file from a copy" in failure
    shutil.rmtree(kept.parent)
    assert run(bucket, out)[0] == job.FAILED
    assert f"{kept.parent} has no file any more; restore the file from a copy" in capsys.readouterr().err
    kept.parent.mkdir()
    kept.write_bytes(content)
    assert run(bucket, out)[0] == job.OK
