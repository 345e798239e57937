"""Control files in a folder of this machine: how many of them a run reads, and damaged ones."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import pytest

from cloud_sync.schemas import Check, schema_file
from cloud_sync.spark.storage import LocalStorage
from cloud_sync.spark.tables import Tables, UnknownVersion, Version, encode
from tests.unit.cloud_sync.test_schemas import BASE


def test_lengths_are_those_of_files_that_are_there(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    assert storage.create("folder/file", b"123")
    asked = ["folder/file", "folder", "none", "folder/file/below", "n" * 300]
    assert storage.lengths(asked) == {"folder/file": 3}
    assert storage.lengths([]) == {}


def test_freshness_reads_the_newest_schema_of_a_rule_alone(tmp_path: Path) -> None:
    """Else a run would read more with each version that its rules have had."""
    pytest.importorskip("pyspark")
    from cloud_sync.spark.quality import freshness_limits

    class Counting(LocalStorage):
        def read(self, name: str) -> bytes | None:
            asked.append(name)
            return super().read(name)

    asked: list[str] = []
    storage, no_session = Counting(tmp_path), cast(Any, None)
    version = Version()
    for number in range(3):
        expect = (Check(None, "fail", freshness_ms=60_000 + number),)
        file = schema_file(BASE._replace(rule_hash=f"{number:016}", expect=expect))
        name = f"{number:016}-{file.id}"
        storage.create(f"schemas/rule=hot/{name}.json", file.content)
        version.schemas.setdefault("hot", []).append(name)
    assert freshness_limits(Tables(no_session, storage), version) == [("hot", 60_002, "fail")]
    assert asked == [f"schemas/rule=hot/{name}.json"]


@pytest.mark.parametrize("content", [b"", b'{"format": 1, "num', b'{"format": 1}', b"[]"])
def test_a_damaged_version_is_no_empty_one(tmp_path: Path, content: bytes) -> None:
    """Else the next run would take in the whole bucket anew, and each one after it."""
    storage = LocalStorage(tmp_path)
    tables = Tables(cast(Any, None), storage)
    assert tables.current().number == 0
    storage.create("_versions/000000000001.json", encode(Version(1, "a")))
    storage.create("_versions/000000000002.json", content)
    with pytest.raises(UnknownVersion, match=r"_versions/000000000002\.json is damaged; delete it"):
        tables.current()
    storage.delete("_versions/000000000002.json")
    assert tables.current().number == 1


def test_tables_of_a_newer_penstock_are_named_with_the_remedy(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    storage.create("_versions/000000000001.json", b'{"format": 2, "number": 1}')
    reason = f"{tmp_path}/_versions/000000000001.json has format 2, this job knows 1; update penstock"
    with pytest.raises(UnknownVersion, match=re.escape(reason)):
        Tables(cast(Any, None), storage).current()


def test_a_damaged_version_that_is_due_to_go_does_not_stop_a_run(tmp_path: Path) -> None:
    """Version 1 goes when 17 is committed. It is damaged: the sweep names it, and deletes nothing."""
    storage = LocalStorage(tmp_path)
    tables = Tables(cast(Any, None), storage)
    storage.create("_versions/000000000001.json", b'{"form')
    storage.create("files/run=a/part", b"")
    tables.commit(Version(17, "b"))
    assert tables.current().number == 17
    with pytest.raises(UnknownVersion, match=r"_versions/000000000001\.json is damaged; delete it"):
        tables.sweep()
    storage.delete("_versions/000000000001.json")
    tables.sweep()
    assert storage.names("files") == []
