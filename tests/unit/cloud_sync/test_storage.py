"""Control files in a folder of this machine, and how many of them a run reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from cloud_sync.schemas import Check, schema_file
from cloud_sync.spark.quality import freshness_limits
from cloud_sync.spark.storage import LocalStorage
from cloud_sync.spark.tables import Tables, Version
from tests.unit.cloud_sync.test_schemas import BASE


def test_lengths_are_those_of_files_that_are_there(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    assert storage.create("folder/file", b"123")
    asked = ["folder/file", "folder", "none", "folder/file/below", "n" * 300]
    assert storage.lengths(asked) == {"folder/file": 3}
    assert storage.lengths([]) == {}


def test_freshness_reads_the_newest_schema_of_a_rule_alone(tmp_path: Path) -> None:
    """Else a run would read more with each version that its rules have had."""

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
