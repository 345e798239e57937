"""The spool keeps what it committed, refuses or drops as told, and goes on when something is damaged."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud_sync.errors import SpoolBusy, SpoolError, SpoolFull, SpoolVersion
from cloud_sync.records import ROW_OVERHEAD_BYTES, SpooledRow, checksum
from cloud_sync.spool import OnFull, PlannedFile, Spool, SpoolSettings
from cloud_sync.targets import open_target
from cloud_sync.uploader import Uploader
from tests.unit.cloud_sync.support import DATE, NOW_MS, flip_body, record, records


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "spool.db"


@pytest.fixture
def spool(path: Path) -> Iterator[Spool]:
    opened = Spool(path, "gw1")
    yield opened
    opened.close()


def numbers(spool: Spool) -> list[int]:
    return [
        int(row.body.split(b",")[0].split(b":")[1]) for row in spool.outgoing.take("hot", DATE, 10**6, 10**9)
    ]


def full_spool(path: Path, on_full: OnFull, rows: int = 10) -> Spool:
    """A spool with room for exactly `rows` rows of 100 bytes, all of them taken."""
    opened = Spool(path, "gw1", SpoolSettings(bytes_max=rows * (100 + ROW_OVERHEAD_BYTES), on_full=on_full))
    opened.append([record(number, size=100) for number in range(1, rows + 1)], NOW_MS)
    opened.commit(NOW_MS)
    return opened


def test_rows_and_state_survive_in_one_transaction(spool: Spool, path: Path) -> None:
    spool.append(records(3), NOW_MS)
    assert spool.stats().pending == 3
    assert spool.commit(NOW_MS, {"rule/hot": b"window", "position": b"42"}) == 3
    assert spool.stats().pending == 0
    spool.append(records(2, start=4), NOW_MS)  # never committed
    spool.close()
    with closing(Spool(path, "gw1")) as again:
        assert numbers(again) == [1, 2, 3]
        assert again.state() == {"rule/hot": b"window", "position": b"42"}
        assert again.state("rule/") == {"rule/hot": b"window"}
        again.commit(NOW_MS, {"position": None})
        assert again.state() == {"rule/hot": b"window"}


def test_a_failed_commit_stores_neither_rows_nor_state(spool: Spool) -> None:
    spool.append(records(3), NOW_MS)
    with pytest.raises(TypeError):
        spool.commit(NOW_MS, {"position": b"1", "window": "text is no state"})  # type: ignore[dict-item]
    assert spool.state() == {} and numbers(spool) == []
    assert spool.commit(NOW_MS) == 3, "the rows are still pending"
    assert [row.seq for row in spool.outgoing.take("hot", DATE, 10, 10**6)] == [1, 2, 3]


def test_a_commit_is_due_by_time_or_by_number(path: Path) -> None:
    with closing(Spool(path, "gw1", SpoolSettings(group_rows=5, group_wait_ms=10))) as spool:
        assert spool.due_ms is None
        spool.append(records(1), NOW_MS)
        spool.append(records(1), NOW_MS + 8)
        assert spool.due_ms == NOW_MS + 10
        spool.append(records(3), NOW_MS + 9)
        assert spool.due_ms == NOW_MS
        spool.commit(NOW_MS + 9)
        assert spool.due_ms is None


def test_sequence_numbers_are_never_used_again(spool: Spool, path: Path) -> None:
    spool.append(records(3), NOW_MS)
    spool.commit(NOW_MS)
    spool.outgoing.acknowledge(PlannedFile("f", "hot", DATE, 1, 3, 3, 0, ""))
    identity = spool.spool_id
    spool.close()
    with closing(Spool(path, "gw1")) as again:
        again.append(records(1), NOW_MS)
        again.commit(NOW_MS)
        assert [row.seq for row in again.outgoing.take("hot", DATE, 10, 10**6)] == [4]
        assert again.spool_id == identity


def test_block_refuses_and_changes_nothing(path: Path) -> None:
    with closing(full_spool(path, "block")) as spool:
        with pytest.raises(SpoolFull, match="1640 of 1640 bytes"):
            spool.append(records(1), NOW_MS)
        assert spool.stats().rows == 10 and spool.stats().pending == 0
        spool.outgoing.acknowledge(PlannedFile("f", "hot", DATE, 1, 2, 2, 0, ""))
        spool.append(records(1, start=11), NOW_MS)
        spool.commit(NOW_MS)
        assert numbers(spool) == [3, 4, 5, 6, 7, 8, 9, 10, 11]


def test_drop_newest_keeps_what_is_there(path: Path) -> None:
    with closing(full_spool(path, "drop_newest")) as spool:
        spool.append([record(11, size=100)], NOW_MS)
        spool.commit(NOW_MS)
        assert numbers(spool) == list(range(1, 11))
        assert spool.stats().counters["dropped_newest"] == 1


def test_drop_oldest_makes_room_but_spares_the_file_in_upload(path: Path) -> None:
    with closing(full_spool(path, "drop_oldest")) as spool:
        spool.outgoing.plan(PlannedFile("f", "hot", DATE, 1, 2, 2, 0, ""))
        spool.append([record(number, size=100) for number in (11, 12, 13)], NOW_MS)
        spool.commit(NOW_MS)
        assert numbers(spool) == [1, 2, 6, 7, 8, 9, 10, 11, 12, 13]
        stats = spool.stats()
        assert stats.counters["dropped_oldest"] == 3
        assert stats.bytes == stats.bytes_max


def test_a_file_is_not_planned_with_rows_that_were_dropped_since_they_were_taken(path: Path) -> None:
    """They would be in the cloud, and counted as dropped."""
    with closing(full_spool(path, "drop_oldest")) as spool:
        spool.append([record(number, size=100) for number in (11, 12, 13)], NOW_MS)
        spool.commit(NOW_MS)  # while the uploader forms a file of rows 1 to 5
        assert not spool.outgoing.plan(PlannedFile("f", "hot", DATE, 1, 5, 5, 0, ""))
        assert spool.outgoing.planned() is None
        assert spool.outgoing.plan(PlannedFile("g", "hot", DATE, 4, 8, 5, 0, ""))


def test_rows_that_came_later_are_not_part_of_a_commit(path: Path) -> None:
    with closing(Spool(path, "gw1")) as spool:
        spool.append(records(2), NOW_MS)
        count = spool.pending_rows
        spool.append(records(3, start=3), NOW_MS)
        assert spool.commit(NOW_MS, rows_max=count) == 2
        assert numbers(spool) == [1, 2]
        assert spool.commit(NOW_MS) == 3


def test_a_row_larger_than_the_spool_is_refused(path: Path) -> None:
    spool = Spool(path, "gw1", SpoolSettings(bytes_max=1000))
    with closing(spool), pytest.raises(ValueError, match="cannot enter a spool of 1000 bytes"):
        spool.append([record(1, size=1000)], NOW_MS)


def test_old_rows_expire_and_are_counted(path: Path) -> None:
    with closing(Spool(path, "gw1", SpoolSettings(age_max_ms=1000))) as spool:
        spool.append(records(2), NOW_MS)
        spool.commit(NOW_MS)
        spool.append(records(1, start=3), NOW_MS + 1000)
        spool.commit(NOW_MS + 1000)
        assert numbers(spool) == [1, 2, 3]
        spool.commit(NOW_MS + 1001)
        assert numbers(spool) == [3] and spool.stats().counters["expired"] == 2


def limit_pages(spool: Spool, more: int) -> None:
    """Let SQLite meet a full disk after `more` pages."""
    pages = spool._store.db.execute("PRAGMA page_count").fetchone()[0]
    spool._store.db.execute(f"PRAGMA max_page_count={pages + more}")


def test_a_full_disk_refuses_rows_keeps_the_reserve_and_recovers(spool: Spool, path: Path) -> None:
    reserve = path.with_name("spool.db.reserve")
    spool.append([record(number, size=1000) for number in range(1, 51)], NOW_MS)
    spool.commit(NOW_MS)
    assert reserve.stat().st_size == 4_000_000
    limit_pages(spool, 2)
    spool.append([record(number, size=1000) for number in range(51, 71)], NOW_MS)
    with pytest.raises(SpoolFull, match="is full; free space"):
        spool.commit(NOW_MS, {"position": b"70"})
    assert reserve.exists() and spool.stats().pending == 20, "the reserve is for the uploader"
    assert numbers(spool) == list(range(1, 51)) and spool.state() == {}
    spool.outgoing.acknowledge(PlannedFile("f", "hot", DATE, 1, 50, 50, 0, ""))
    assert spool.commit(NOW_MS, {"position": b"70"}) == 20
    assert numbers(spool) == list(range(51, 71))


def test_the_uploader_gets_the_reserve_on_a_full_disk(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    spool.append(records(3), NOW_MS)
    spool.commit(NOW_MS)
    reserve = spool.path.with_name("spool.db.reserve")
    write = spool.outgoing._delete

    def needs_the_reserve(planned: PlannedFile, last_seq: int) -> None:
        if reserve.exists():
            raise SpoolFull("the disk is full")
        write(planned, last_seq)

    monkeypatch.setattr(spool.outgoing, "_delete", needs_the_reserve)
    spool.outgoing.acknowledge(PlannedFile("f", "hot", DATE, 1, 3, 3, 0, ""))
    assert spool.stats().rows == 0 and spool.stats().counters["reserve_used"] == 4, "piece by piece"
    assert reserve.exists(), "claimed again when there is room"


def test_the_file_shrinks_as_rows_leave_it(spool: Spool, path: Path) -> None:
    spool.append([record(number, size=1000) for number in range(1, 6001)], NOW_MS)
    spool.commit(NOW_MS)
    spool._store.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    before = path.stat().st_size
    spool.outgoing.acknowledge(PlannedFile("f", "hot", DATE, 1, 5000, 5000, 0, ""))
    spool._store.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    assert path.stat().st_size < before / 2


def test_drop_oldest_makes_room_on_a_full_disk(path: Path) -> None:
    with closing(Spool(path, "gw1", SpoolSettings(on_full="drop_oldest"))) as spool:
        spool.append([record(number, size=1000) for number in range(1, 51)], NOW_MS)
        spool.commit(NOW_MS)
        limit_pages(spool, 0)
        spool.append([record(number, size=1000) for number in range(51, 61)], NOW_MS)
        spool.commit(NOW_MS)
        assert numbers(spool)[-10:] == list(range(51, 61))
        assert spool.stats().counters["dropped_oldest"] == 60 - len(numbers(spool)) > 0


def test_a_damaged_row_is_set_aside_and_the_others_go_on(spool: Spool, path: Path) -> None:
    spool.append(records(3), NOW_MS)
    spool.commit(NOW_MS)
    flip_body(path, 2)
    assert numbers(spool) == [1, 3]
    stats = spool.stats()
    assert (stats.rows, stats.set_aside, stats.counters["corrupt_rows"]) == (3, 1, 1)
    assert spool.restore_set_aside() == 0, "a damaged row stays aside"


def test_damaged_state_is_left_out_and_counted(spool: Spool, path: Path) -> None:
    spool.commit(NOW_MS, {"rule/hot": b"window", "position": b"42"})
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE state SET body = x'00' WHERE key = 'position'")
    assert spool.state() == {"rule/hot": b"window"}
    assert spool.stats().counters["corrupt_state"] == 1


def test_one_writer_at_a_time(spool: Spool, path: Path) -> None:
    with pytest.raises(SpoolBusy, match="in use by another process"):
        Spool(path, "gw1")
    spool.close()
    Spool(path, "gw1").close()


def test_an_unknown_version_is_named(spool: Spool, path: Path) -> None:
    spool.close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version=9")
    with pytest.raises(SpoolVersion, match="schema version 9, this program knows version 2"):
        Spool(path, "gw1")


def test_another_programs_database_is_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE theirs (x)")
    before = path.read_bytes()
    with pytest.raises(SpoolVersion, match="database of another program"):
        Spool(path, "gw1")
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content", [b"no database at all, just text" * 100, b"SQLite format 3\0" + b"\xff" * 4000]
)
def test_a_damaged_file_names_the_remedy(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(SpoolError, match=r"repair|another program"):
        Spool(path, "gw1")
    path.unlink()
    Spool(path, "gw1").close()


def test_a_torn_wal_tail_loses_only_what_was_not_committed(path: Path) -> None:
    spool = Spool(path, "gw1")
    spool.append(records(5), NOW_MS)
    spool.commit(NOW_MS)
    wal = path.with_name("spool.db-wal").read_bytes()
    spool.append(records(5, start=6), NOW_MS)
    spool.commit(NOW_MS)
    longer, database = path.with_name("spool.db-wal").read_bytes(), path.read_bytes()
    spool.close()
    for cut in (len(wal), len(wal) + 100, len(longer) - 1, len(longer) - 5000):
        copy = path.with_name(f"cut-{cut}.db")
        copy.write_bytes(database)
        copy.with_name(f"{copy.name}-wal").write_bytes(longer[:cut])
        with closing(Spool(copy, "gw1")) as again:
            assert numbers(again)[:5] == [1, 2, 3, 4, 5]
            assert len(numbers(again)) in (5, 10)


def test_renaming_the_gateway_needs_an_empty_spool(spool: Spool, path: Path) -> None:
    spool.append(records(1), NOW_MS)
    spool.commit(NOW_MS)
    spool.close()
    with pytest.raises(SpoolError, match="holds rows of gateway 'gw1', not 'gw2'"):
        Spool(path, "gw2")
    with closing(Spool(path, "gw1")) as again:
        again.outgoing.acknowledge(PlannedFile("f", "hot", DATE, 1, 1, 1, 0, ""))
    with closing(Spool(path, "gw2")) as renamed:
        assert renamed.gateway == "gw2"


def test_the_backlog_is_not_loaded(path: Path) -> None:
    with closing(Spool(path, "gw1")) as spool:
        spool.append([record(number, size=200) for number in range(5000)], NOW_MS)
        spool.commit(NOW_MS)
        assert len(spool.outgoing.take("hot", DATE, 100, 10**9)) == 100
        assert len(spool.outgoing.take("hot", DATE, 10**6, 2_000)) == 10


@given(st.binary(min_size=1, max_size=50), st.integers(0, 49), st.integers(1, 255))
def test_the_checksum_notices_any_changed_byte(body: bytes, position: int, change: int) -> None:
    position %= len(body)
    changed = body[:position] + bytes([body[position] ^ change]) + body[position + 1 :]
    check = checksum(7, "hot", DATE, body)
    assert SpooledRow(7, "hot", DATE, 0, body, check).is_intact
    assert not SpooledRow(7, "hot", DATE, 0, changed, check).is_intact
    assert not SpooledRow(8, "hot", DATE, 0, body, check).is_intact


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 MB. Needs the right to mount."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", folder], capture_output=True, check=False
    )
    if mount.returncode:
        pytest.skip("this user may not mount a file system")
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.mark.long
def test_a_really_full_disk_can_be_emptied(small_disk: Path, tmp_path: Path) -> None:
    """The disk fills up; what is durable stays, can be uploaded and deleted, and the spool goes on."""
    with closing(Spool(small_disk / "spool.db", "gw1")) as spool:
        stored = 0
        with pytest.raises(SpoolFull):  # noqa: PT012 - it is the loop that must come to this end
            while True:
                spool.append([record(stored + i, size=1000) for i in range(1, 51)], NOW_MS)
                spool.commit(NOW_MS, {"position": str(stored + 50).encode()})
                stored += 50
        assert stored > 2500 and spool.state() == {"position": str(stored).encode()}
        with pytest.raises(SpoolFull, match="is full; free space"):
            spool.commit(NOW_MS)
        uploader = Uploader(spool, open_target(str(tmp_path / "bucket")))
        uploader.drain(NOW_MS)
        assert uploader.stats.rows == stored
        assert spool.commit(NOW_MS, {"position": str(stored + 50).encode()}) == 50
    with closing(Spool(small_disk / "spool.db", "gw1")) as again:
        assert again.stats().rows == 50 and again.state() == {"position": str(stored + 50).encode()}


@pytest.mark.long
def test_a_full_disk_can_be_emptied_after_a_kill(small_disk: Path, tmp_path: Path) -> None:
    """Other files take what the spool gives back while it opens, as the segments of the journal do."""
    path = small_disk / "spool.db"
    if not os.fork():
        spool = Spool(path, "gw1")
        with suppress(SpoolFull):
            for first in range(1, 20_000, 50):
                spool.append([record(first + i, size=1000) for i in range(50)], NOW_MS)
                spool.commit(NOW_MS)
        os._exit(0)  # nothing is closed
    assert os.wait()[1] == 0
    path.with_name("spool.db-shm").unlink()  # as after a power cut: SQLite makes it anew
    fill(small_disk, 4096)
    with closing(Spool(path, "gw1")) as again:
        fill(small_disk, 4096)
        uploader = Uploader(again, open_target(str(tmp_path / "bucket")))
        uploader.drain(NOW_MS)
        assert uploader.stats.rows > 2500
        assert again.stats().rows == 0


def fill(folder: Path, size_bytes: int) -> None:
    """Reserve files of a size until there is no room for another."""
    with suppress(OSError):
        while True:
            with NamedTemporaryFile(dir=folder, delete=False) as file:
                os.posix_fallocate(file.fileno(), 0, size_bytes)
