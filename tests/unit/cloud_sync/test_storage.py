"""Control files in a folder of this machine."""

from __future__ import annotations

from pathlib import Path

from cloud_sync.spark.storage import LocalStorage


def test_lengths_are_those_of_files_that_are_there(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    assert storage.create("folder/file", b"123")
    asked = ["folder/file", "folder", "none", "folder/file/below", "n" * 300]
    assert storage.lengths(asked) == {"folder/file": 3}
    assert storage.lengths([]) == {}
