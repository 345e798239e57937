"""Damage to a spool's files: nothing is lost in silence, every error has a remedy,
and repair always works."""

from __future__ import annotations

import gzip
import json
import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from cloud_sync import spool_tools
from cloud_sync.errors import SpoolError
from cloud_sync.records import Record
from cloud_sync.spool import Origin, PlannedFile, Spool
from cloud_sync.spool.high_water import mark_path, read_mark
from cloud_sync.spool.repair import repair
from cloud_sync.uploader import Uploader
from tests.unit.cloud_sync.support import DATE, NOW_MS, MemoryTarget, record

ROWS = 400
LIVE = ("", "-wal", ".mark")
VARIANTS = 30
PAGE_BYTES = 4096
INDEX = (2, 10)
"""The first byte of pages of SQLite that hold entries of an index."""


def made(first: int, last: int) -> list[Record]:
    """The rows of these numbers."""
    return [record(number, size=100 + number % 50) for number in range(first, last + 1)]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a spool of 400 rows that was killed: the older half in the database, the
    newer one in the log."""
    folder = tmp_path_factory.mktemp("image")
    live = folder / "live.db"
    with closing(Spool(live, "gw1")) as spool:
        for first in range(1, ROWS, 10):
            spool.append(made(first, first + 9), NOW_MS, Origin("hot/actions/0", first))
            spool.commit(NOW_MS)
            if first == ROWS // 2 + 1:
                spool._store.db.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
        for suffix in LIVE:
            shutil.copy(folder / f"live.db{suffix}", folder / f"spool.db{suffix}")
    return folder


def copied(image: Path, folder: Path) -> Path:
    """A spool to be damaged."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for suffix in LIVE:
        shutil.copy(image / f"spool.db{suffix}", folder / f"spool.db{suffix}")
    return folder / "spool.db"


def arrived(target: MemoryTarget) -> set[int]:
    """The numbers of the rows that were uploaded; each row is what was appended."""
    found = [
        json.loads(line)
        for name in target.names("v2")
        for line in gzip.decompress(target.files[name]).splitlines()
    ]
    assert all(row["pad"].strip("x") == "" and row["rule"] == "hot" for row in found)
    return {row["n"] for row in found}


def test_a_missing_log_is_told_with_the_number_of_rows(image: Path, tmp_path: Path) -> None:
    path = copied(image, tmp_path / "a")
    path.with_name("spool.db-wal").unlink()
    verdict = spool_tools.verify(path)
    assert verdict.lost is not None and not verdict.is_sound
    with closing(Spool(path, "gw1")) as spool:
        there = spool.stats().rows
        assert spool.lost is not None and spool.lost.rows == ROWS - there > 0
        assert spool.stats().counters["lost"] == ROWS - there
        # Lost numbers were perhaps uploaded: they are not given again.
        spool.append([record(1)], NOW_MS, Origin("hot/actions/0", ROWS + 1))
        spool.commit(NOW_MS)
        assert spool.outgoing.take("hot", DATE, 10**6, 10**9)[-1].seq > ROWS
    with closing(Spool(path, "gw1")) as again:
        assert again.lost is None, "told once"
        assert again.stats().counters["lost"] == ROWS - there
    assert spool_tools.verify(path).is_sound


def test_rows_that_are_gone_from_the_database_are_told_once(image: Path, tmp_path: Path) -> None:
    path = copied(image, tmp_path / "a")
    Spool(path, "gw1").close()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM rows WHERE seq BETWEEN 11 AND 20")
    with closing(Spool(path, "gw1")) as spool:
        assert spool.lost is not None and spool.lost.rows == 10
        size = spool.stats().bytes
    with closing(Spool(path, "gw1")) as again:
        stats = again.stats()
        assert again.lost is None and (stats.rows, stats.counters["lost"]) == (ROWS - 10, 10)
        assert stats.bytes == size == sum(row.size_bytes for row in made(1, 10) + made(21, ROWS))


def test_a_repaired_spool_gives_no_number_that_its_lost_log_has_given(image: Path, tmp_path: Path) -> None:
    path = copied(image, tmp_path / "a")
    path.with_name("spool.db-wal").unlink()
    repaired = repair(path)
    with closing(Spool(path, "gw1")) as spool:
        assert spool.lost is not None and spool.lost.rows == ROWS - repaired.rows > 0
        assert spool.highest_seq > ROWS


def test_a_flipped_bit_in_the_log_is_told(image: Path, tmp_path: Path) -> None:
    for number in range(10):
        path = copied(image, tmp_path / "a")
        flip(path.with_name("spool.db-wal"), random.Random(number))
        with closing(Spool(path, "gw1")) as spool:
            lost = 0 if spool.lost is None else spool.lost.rows
            assert spool.stats().rows + lost == ROWS
            assert lost > 0, "the log is checked from its start, and the damage is within its used part"


def test_rows_of_a_lost_log_are_made_again_by_a_replay(image: Path, tmp_path: Path) -> None:
    path = copied(image, tmp_path / "a")
    path.with_name("spool.db-wal").unlink()
    with closing(Spool(path, "gw1")) as spool:
        spool.append(made(1, ROWS), NOW_MS, Origin("hot/actions/0", 1))
        spool.commit(NOW_MS)
        target = MemoryTarget()
        Uploader(spool, target).drain(NOW_MS)
        assert arrived(target) == set(range(1, ROWS + 1))
        assert spool.stats().counters["uploaded"] == ROWS


def test_a_removed_database_is_told(image: Path, tmp_path: Path) -> None:
    path = copied(image, tmp_path / "a")
    path.unlink()
    path.with_name("spool.db-wal").unlink()
    with closing(Spool(path, "gw1")) as spool:
        assert spool.lost is not None and spool.lost.rows == ROWS
    with closing(Spool(path, "gw1")) as again:
        assert again.lost is None


def test_an_old_spool_without_a_mark_opens_quietly(image: Path, tmp_path: Path) -> None:
    path = copied(image, tmp_path / "a")
    path.with_name("spool.db.mark").unlink()
    with closing(Spool(path, "gw1")) as spool:
        assert spool.lost is None and spool.stats().rows == ROWS


def test_a_damaged_plan_is_forgotten_and_its_rows_go_on(image: Path, tmp_path: Path) -> None:
    """With a plan whose end was changed, rows would be deleted that were never uploaded."""
    path = copied(image, tmp_path / "a")
    with closing(Spool(path, "gw1")) as spool:
        name = f"v2/gw=gw1/rule=hot/date={DATE}/1-10-{'0' * 16}.jsonl.gz"
        spool.outgoing.plan(PlannedFile(name, "hot", DATE, 1, 300, 10, 99, "0" * 64))
        target = MemoryTarget()
        target.files[name] = b"as if it had been uploaded"
        assert spool.outgoing.planned() is None
        Uploader(spool, target).drain(NOW_MS)
        del target.files[name]
        assert arrived(target) == set(range(1, ROWS + 1))


def flip(path: Path, rng: random.Random) -> None:
    """Change one bit."""
    data = bytearray(path.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def damage(path: Path, rng: random.Random) -> str:
    """Damage one of the files, as bad media, a bad copy or a bad administrator would; tells what was done."""
    victim = path.with_name("spool.db" + rng.choice(LIVE))
    size = victim.stat().st_size
    kind = rng.choice(("flip", "flips", "page", "cut", "noise", "remove", "swap"))
    data = bytearray(victim.read_bytes())
    at = rng.randrange(size)
    if kind == "flip":
        data[at] ^= 1 << rng.randrange(8)
    elif kind == "flips":
        for _ in range(200):
            data[rng.randrange(size)] = rng.randrange(256)
    elif kind == "page":
        data[at // 4096 * 4096 : at // 4096 * 4096 + 4096] = bytes(4096)
    elif kind == "cut":
        del data[at:]
    elif kind == "noise":
        data[at : at + 300] = rng.randbytes(min(300, size - at))
    elif kind == "swap":
        one, other = rng.randrange(0, size, 4096), rng.randrange(0, size, 4096)
        first, second = data[one : one + 4096], data[other : other + 4096]
        data[one : one + len(second)], data[other : other + len(first)] = second, first
    victim.write_bytes(data)
    if kind == "remove":
        victim.unlink()
    return f"{kind} of {victim.name} at {at}"


@pytest.mark.parametrize("part", range(3))
@pytest.mark.long
def test_no_damage_is_silent_and_every_error_has_a_remedy(image: Path, tmp_path: Path, part: int) -> None:
    for number in range(part, VARIANTS, 3):
        rng = random.Random(number)
        path = copied(image, tmp_path / "a")
        told = f"{number}: {damage(path, rng)}"
        target = MemoryTarget()
        try:
            with closing(Spool(path, "gw1")) as spool:
                Uploader(spool, target).drain(NOW_MS)
                stats = spool.stats()
        except SpoolError as error:
            assert "repair" in str(error) or "check the disk" in str(error), f"{told}: {error}"
            assert arrived(target) <= set(range(1, ROWS + 1))
            continue
        there = arrived(target)
        assert len(there) + stats.set_aside + stats.counters["lost"] >= ROWS, f"{told}: {stats}"


@pytest.mark.parametrize("part", range(3))
@pytest.mark.long
def test_repair_always_works_and_leaves_a_sound_spool(image: Path, tmp_path: Path, part: int) -> None:
    for number in range(part, VARIANTS, 3):
        rng = random.Random(1000 + number)
        path = copied(image, tmp_path / "a")
        told = f"{number}: {damage(path, rng)}"
        if not path.exists():
            continue
        found = repair(path)
        assert spool_tools.verify(path).structure == (), told
        with closing(Spool(path, "gw1")) as spool:
            stats = spool.stats()
            assert stats.rows == found.rows + found.set_aside, told
            assert stats.rows + stats.counters["lost"] >= ROWS or found.lost, told
            target = MemoryTarget()
            Uploader(spool, target).drain(NOW_MS)
            assert len(arrived(target)) == found.rows, told


def test_a_mark_that_cannot_be_written_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A folder stands where the mark has to be: the spool works on, and the mark is written later."""
    path = tmp_path / "spool.db"
    mark_path(path).mkdir()
    with closing(Spool(path, "gw1")) as spool:
        for number in range(1, 4):
            spool.append([record(number)], NOW_MS)
            spool.commit(NOW_MS)
        (told,) = [item for item in caplog.records if item.message == "spool.mark_unwritten"]
        assert "is a directory" in str(vars(told)["error"])
        mark_path(path).rmdir()
        spool.append([record(4)], NOW_MS)
        spool.commit(NOW_MS)
        mark = read_mark(path)
        assert mark is not None and mark.rows == 4


def test_an_index_without_a_row_stops_the_upload_with_the_remedy(image: Path, tmp_path: Path) -> None:
    path = copied(image, tmp_path / "spool")
    Spool(path, "gw1").close()  # everything is in the database now
    data = path.read_bytes()
    pages = [bytearray(data[at : at + PAGE_BYTES]) for at in range(0, len(data), PAGE_BYTES)]
    for page in pages:
        if page[0] in INDEX and DATE.encode() in page:
            page[:] = page.replace(b"hot" + DATE.encode(), b"hos" + DATE.encode())
    path.write_bytes(b"".join(pages))
    target = MemoryTarget()
    with closing(Spool(path, "gw1")) as spool:
        uploader = Uploader(spool, target)
        assert uploader.step(NOW_MS + 10**7, force=True) > 0
        assert "its index does not have row 1); save what can be read with: penstock spool repair" in (
            uploader.stats.last_error
        )
    repair(path)
    with closing(Spool(path, "gw1")) as spool:
        Uploader(spool, target).drain(NOW_MS)
    assert arrived(target) == set(range(1, ROWS + 1))
