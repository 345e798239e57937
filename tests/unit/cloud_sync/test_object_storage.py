"""Control files in an object store, as a session of Spark Connect uses it."""

from __future__ import annotations

import pytest

from cloud_sync.spark.storage import ObjectStorage, StorageMissing

pytest.importorskip("obstore")


def test_control_files_are_created_once_listed_and_deleted() -> None:
    storage = ObjectStorage("memory:///")
    assert not storage.is_folder("_versions") and storage.names("_versions") == []
    assert storage.read("_lease.json") is None
    assert storage.create("_versions/1.json", b"one") and not storage.create("_versions/1.json", b"two")
    assert storage.read("_versions/1.json") == b"one"
    assert storage.create("fleet/run=a/x", b"") and storage.create("fleet/run=a/y", b"")
    assert storage.is_folder("fleet/run=a") and not storage.is_folder("fleet/run=")
    assert storage.names("fleet") == ["run=a"] and sorted(storage.names("")) == ["_versions", "fleet"]
    assert storage.create("fleet/part", b"12") and sorted(storage.names("fleet")) == ["part", "run=a"]
    found = storage.lengths(["_versions/1.json", "fleet/part", "fleet/run=a", "none"])
    assert found == {"_versions/1.json": 3, "fleet/part": 2}
    storage.delete("fleet/part")
    storage.delete("fleet/run=a")
    storage.delete("_versions/1.json")
    storage.delete("_versions/1.json")
    assert storage.names("") == []


def test_what_is_no_object_store_is_refused() -> None:
    with pytest.raises(StorageMissing, match="Spark Connect gives no access to file systems, so hdfs://"):
        ObjectStorage("hdfs://name/path")
