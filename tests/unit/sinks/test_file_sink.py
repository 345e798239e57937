"""The file sink on a real file system: lines, rotation, and paths that try to leave the data folder."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sinks import build_action
from sql import Emission
from tests.support.waiting import PATIENCE_MS
from tests.unit.sinks.support import Bench, LeapingClock, Scripted, rows

Open = Callable[..., "Files"]


class Files:
    """A file sink writing below `root`."""

    def __init__(self, root: Path, settings: dict[str, Any]) -> None:
        self.root = root
        self.clock = LeapingClock()
        self.bench = Bench(Scripted(), clock=self.clock, tmp_path=root)
        self.delivery = build_action("file", settings, rule_id="hot", environment=self.bench.environment)
        self.count = 0

    def write(self, *inserted: dict[str, Any]) -> str:
        """Send one emission and give its outcome."""
        self.count += 1
        assert self.delivery.submit(rows(*inserted), self.count)
        return self.bench.await_receipts(self.count)[-1][1]

    def close(self) -> None:
        assert self.delivery.close(self.clock.monotonic_ms() + PATIENCE_MS) == 0

    def names(self) -> list[str]:
        return sorted(str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file())


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_writes_one_line_per_row_below_the_data_folder(tmp_path: Path) -> None:
    files = Files(tmp_path / "new", {"path": "alarms/hot.jsonl"})
    files.write({"n": 1}, {"n": 2})
    files.write({"n": 3})
    files.close()
    assert lines(tmp_path / "new/alarms/hot.jsonl") == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert (tmp_path / "new/alarms/hot.jsonl").stat().st_mode & 0o007 == 0


def test_appends_after_a_restart_and_ends_a_torn_line(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"n":1}\n{"n":')
    files = Files(tmp_path, {"path": "a.jsonl"})
    files.write({"n": 2})
    files.close()
    assert (tmp_path / "a.jsonl").read_text() == '{"n":1}\n{"n":\n{"n":2}\n'


def test_rolls_by_size_and_keeps_every_line_once(tmp_path: Path) -> None:
    files = Files(tmp_path, {"path": "a.jsonl", "rollingSize": 40})
    for number in range(20):
        files.write({"n": number}, {"m": number})
    files.close()
    names = files.names()
    assert len(names) > 3
    assert all((tmp_path / name).stat().st_size <= 40 for name in names)
    numbers = [row["n"] for name in names for row in lines(tmp_path / name) if "n" in row]
    assert sorted(numbers) == list(range(20))


def test_rolled_files_are_in_order_by_their_names(tmp_path: Path) -> None:
    files = Files(tmp_path, {"path": "a.b.jsonl", "rollingCount": 2})
    files.write(*[{"n": number} for number in range(7)])
    files.close()
    *rolled, current = sorted(files.names(), key=lambda name: (name == "a.b.jsonl", name))
    assert current == "a.b.jsonl"
    assert all(name.startswith("a-17") and name.endswith(".b.jsonl") for name in rolled)
    assert [[row["n"] for row in lines(tmp_path / name)] for name in [*rolled, current]] == [
        [0, 1],
        [2, 3],
        [4, 5],
        [6],
    ]


def test_rolls_by_age(tmp_path: Path) -> None:
    files = Files(tmp_path, {"path": "a.jsonl", "rollingInterval": "1m"})
    files.write({"n": 1})
    files.clock.time_ms += 59_999
    files.write({"n": 2})
    assert files.names() == ["a.jsonl"]
    files.clock.time_ms += 60_000
    files.write({"n": 3})
    assert len(files.names()) == 2
    assert lines(tmp_path / "a.jsonl") == [{"n": 3}]
    files.close()


def test_keeps_only_so_many_full_files(tmp_path: Path) -> None:
    (tmp_path / "a-notes.jsonl").write_text("mine\n")
    files = Files(tmp_path, {"path": "a.jsonl", "rollingCount": 1, "rollingKeep": 2})
    files.write(*[{"n": number} for number in range(6)])
    files.close()
    assert "a-notes.jsonl" in files.names()
    kept = [lines(tmp_path / name)[0]["n"] for name in files.names() if name != "a-notes.jsonl"]
    assert sorted(kept) == [3, 4, 5]


def test_a_file_per_value_and_hostile_values_stay_inside(tmp_path: Path) -> None:
    root = tmp_path / "data"
    files = Files(root, {"path": "by/{{.dev}}.jsonl"})
    hostile = ["a", "../../../evil", "/etc/passwd", "..", "b\\..\\c", "a"]
    files.write(*[{"dev": value} for value in hostile])
    assert files.names() == [
        "by/%2Fetc%2Fpasswd.jsonl",
        "by/..%2F..%2F..%2Fevil.jsonl",
        "by/...jsonl",
        "by/a.jsonl",
        "by/b%5C..%5Cc.jsonl",
    ]
    files.close()
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_value_that_is_a_parent_folder_is_a_dead_letter(tmp_path: Path) -> None:
    files = Files(tmp_path / "data", {"path": "{{.dev}}/x.jsonl"})
    assert files.write({"dev": ".."}) == "rejected"
    assert "'..' segment" in files.bench.letters.kept[0]["reason"]
    files.close()
    assert not (tmp_path / "x.jsonl").exists()


@pytest.mark.parametrize("place", ["folder", "file"])
def test_symbolic_links_are_not_followed(tmp_path: Path, place: str) -> None:
    root, outside = tmp_path / "data", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    if place == "folder":
        (root / "sub").symlink_to(outside)
    else:
        (root / "sub").mkdir()
        (root / "sub" / "a.jsonl").symlink_to(outside / "stolen")
    files = Files(root, {"path": "sub/a.jsonl"})
    assert files.write({"n": 1}) == "rejected"
    assert "symbolic links are not followed" in files.bench.letters.kept[0]["reason"] or place == "folder"
    files.close()
    assert list(outside.iterdir()) == []


def test_a_name_that_is_too_long_is_a_dead_letter_and_the_next_row_goes_on(tmp_path: Path) -> None:
    files = Files(tmp_path, {"path": "{{.dev}}.jsonl"})
    assert files.write({"dev": "x" * 300}, {"dev": "ok"}) == "rejected"
    assert files.names() == ["ok.jsonl"]
    files.close()


def test_many_files_stay_within_the_open_files_bound(tmp_path: Path) -> None:
    files = Files(tmp_path, {"path": "{{.dev}}.jsonl"})
    files.write(*[{"dev": str(number % 150)} for number in range(300)])
    assert 0 < len([name for name in open_below(tmp_path) if name.endswith(".jsonl")]) <= 64
    files.close()
    assert all(len(lines(tmp_path / name)) == 2 for name in files.names())
    assert len(files.names()) == 150


def open_below(folder: Path) -> list[str]:
    """The open files of this process below a folder."""
    targets = map(_target, Path("/proc/self/fd").iterdir())
    return [target for target in targets if target.startswith(f"{folder}/")]


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""


def test_delimited_files_have_one_header_each(tmp_path: Path) -> None:
    settings = {"path": "a.csv", "format": "delimited", "hasHeader": True, "rollingCount": 2}
    files = Files(tmp_path, settings)
    files.write({"n": 1}, {"n": 2}, {"n": 3})
    files.close()
    assert [(tmp_path / name).read_text() for name in files.names()] == ["n\n1\n2\n", "n\n3\n"]


def test_gzip_files_can_be_read_at_any_time(tmp_path: Path) -> None:
    files = Files(tmp_path, {"path": "a.jsonl.gz", "compression": "gzip"})
    files.write({"n": 1})
    files.write({"n": 2})
    assert gzip.decompress((tmp_path / "a.jsonl.gz").read_bytes()) == b'{"n":1}\n{"n":2}\n'
    files.close()


def test_a_full_disk_is_tried_again_and_leaves_no_half_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_write, failures = os.write, [b"", b""]

    def write(descriptor: int, data: Any) -> int:
        if failures and bytes(data).startswith(b'{"n":2'):
            failures.pop()
            real_write(descriptor, bytes(data)[:4])
            raise OSError(28, "No space left on device")
        return real_write(descriptor, data)

    files = Files(tmp_path, {"path": "a.jsonl"})
    files.write({"n": 1})
    monkeypatch.setattr(os, "write", write)
    assert files.write({"n": 2}) == "delivered"
    files.close()
    assert not failures
    assert lines(tmp_path / "a.jsonl") == [{"n": 1}, {"n": 2}]
    assert files.delivery.stats().retried == 2
    assert files.delivery.stats().last_error == "file 'a.jsonl': no space left on device"


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    files = Files(tmp_path, {"path": "{{.dev}}/a.jsonl", "rollingCount": 1})
    files.write(*[{"dev": str(number % 3)} for number in range(30)], {"dev": "x" * 300})
    files.close()
    assert open_below(tmp_path) == []


def test_error_emissions_are_lines_too(tmp_path: Path) -> None:
    files = Files(tmp_path, {"path": "errors.jsonl"})
    emission = Emission("hot", 5, "error", error="bad", inserted=[{"a": 1}])
    assert files.delivery.submit(emission, 1)
    files.bench.await_receipts(1)
    files.close()
    assert lines(tmp_path / "errors.jsonl") == [{"error": "bad", "rule": "hot", "at": 5, "event": {"a": 1}}]
