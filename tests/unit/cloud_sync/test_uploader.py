"""The uploader: deterministic files, exactly once, whatever happens between two steps."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cloud_sync.errors import TooLarge
from cloud_sync.names import manifest_name
from cloud_sync.records import Record
from cloud_sync.spool import Spool, SpoolSettings
from cloud_sync.spool_tools import verify
from cloud_sync.upload_files import form_file
from cloud_sync.uploader import Uploader, UploadSettings, UploadWorker
from edge.clock import SystemClock
from tests.support.waiting import PATIENCE_S, wait_for
from tests.unit.cloud_sync.support import DATE, NOW_MS, MemoryTarget, flip_body, record, records


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    opened = Spool(tmp_path / "spool.db", "gw1")
    yield opened
    opened.close()


def fill(spool: Spool, count: int, **fields: Any) -> None:
    spool.append(records(count, **fields), NOW_MS)
    spool.commit(NOW_MS)


def arrived(target: MemoryTarget) -> list[int]:
    """The numbers of all records in files that have a manifest, checked against it."""
    found: list[int] = []
    for place in target.names("v2-arrivals"):
        listed = json.loads(target.files[place])
        name, content = listed["name"], target.files[listed["name"]]
        assert place.endswith(manifest_name(name).partition("/")[2])
        lines = gzip.decompress(content).splitlines()
        assert listed["sha256"] == hashlib.sha256(content).hexdigest()
        assert (listed["bytes"], listed["rows"]) == (len(content), len(lines))
        assert [json.loads(lines[0])["seq"], json.loads(lines[-1])["seq"]] == [
            listed["first_seq"],
            listed["last_seq"],
        ]
        found += [json.loads(line)["n"] for line in lines]
    return sorted(found)


def test_files_hold_one_rule_and_date_within_the_bounds(spool: Spool) -> None:
    fill(spool, 5)
    fill(spool, 2, start=6, rule="cold/pump 7")
    fill(spool, 1, start=8, date="2025-11-22")
    target = MemoryTarget()
    Uploader(spool, target, UploadSettings(rows_max=3)).drain(NOW_MS)
    folders = sorted(name.rpartition("-")[0] for name in target.names("v2"))
    assert folders == [
        "v2/gw=gw1/rule=cold~2fpump~207/date=2025-11-21/6-7",
        "v2/gw=gw1/rule=hot/date=2025-11-21/1-3",
        "v2/gw=gw1/rule=hot/date=2025-11-21/4-5",
        "v2/gw=gw1/rule=hot/date=2025-11-22/8-8",
    ]
    assert arrived(target) == [1, 2, 3, 4, 5, 6, 7, 8]
    stats = spool.stats()
    assert (stats.rows, stats.bytes, stats.counters["uploaded"]) == (0, 0, 8)


def test_equal_rows_make_equal_bytes(spool: Spool) -> None:
    fill(spool, 3)
    rows = spool.outgoing.take("hot", DATE, 10, 10**6)
    assert form_file(rows, "gw1", "a1") == form_file(rows, "gw1", "a1")
    first = json.loads(gzip.decompress(form_file(rows, "gw1", "a1")[1]).splitlines()[0])
    assert first == {"gateway": "gw1", "spool": "a1", "rule": "hot", "seq": 1, "n": 1, "pad": ""}


def test_a_file_is_formed_by_age_by_number_or_under_pressure(spool: Spool, tmp_path: Path) -> None:
    uploader = Uploader(spool, MemoryTarget(), UploadSettings(rows_max=4, wait_ms=1000))
    fill(spool, 1)
    assert uploader.step(NOW_MS + 400) == 600 and uploader.stats.files == 0
    assert uploader.step(NOW_MS + 1000) == 0 and uploader.stats.files == 1
    fill(spool, 3)
    uploader.step(NOW_MS)
    assert uploader.stats.files == 1
    fill(spool, 1)
    uploader.step(NOW_MS)
    assert (uploader.stats.files, uploader.stats.rows) == (2, 5)
    with closing(Spool(tmp_path / "small.db", "gw1", SpoolSettings(bytes_max=1000))) as small:
        small.append([record(1, size=500)], NOW_MS)
        small.commit(NOW_MS)
        pressed = Uploader(small, MemoryTarget())
        pressed.step(NOW_MS)
        assert pressed.stats.files == 1


def test_a_target_that_is_down_is_tried_again_ever_later(spool: Spool) -> None:
    fill(spool, 3)
    target = MemoryTarget()
    target.is_down = True
    uploader = Uploader(spool, target, UploadSettings(wait_ms=0), random.Random(1))
    waits = [uploader.step(NOW_MS) for _ in range(7)]
    for wait, step in zip(waits, (1000, 2000, 4000, 8000, 16_000, 30_000, 30_000), strict=True):
        assert step / 2 <= wait <= step
    assert uploader.stats.last_error == "the target is down" and uploader.stats.retries == 7
    target.is_down = False
    assert uploader.step(NOW_MS) == 0
    assert arrived(target) == [1, 2, 3] and uploader.stats.last_error == ""


def test_another_content_under_our_name_is_never_overwritten(spool: Spool) -> None:
    fill(spool, 2)
    planned, _ = form_file(spool.outgoing.take("hot", DATE, 10, 10**6), "gw1", spool.spool_id)
    target = MemoryTarget()
    target.files[planned.name] = b"theirs"
    uploader = Uploader(spool, target)
    uploader.drain(NOW_MS)
    assert target.files == {planned.name: b"theirs"}
    stats = spool.stats()
    assert (stats.counters["conflicts"], stats.set_aside) == (1, 2)
    fill(spool, 1, start=3)
    uploader.drain(NOW_MS)
    assert arrived(target) == [3], "the others go on"
    del target.files[planned.name]
    assert spool.restore_set_aside() == 2
    uploader.drain(NOW_MS)
    assert arrived(target) == [1, 2, 3]


class Small(MemoryTarget):
    """A target that refuses files of more than `most` bytes, as a proxy with a bound of its own does."""

    most = 600

    def put_if_absent(self, name: str, content: bytes) -> bool:
        if len(content) > self.most:
            raise TooLarge(f"cannot store {name}: 413")
        return super().put_if_absent(name, content)


def noise(number: int, size: int = 200) -> Record:
    """A record that gzip does not make smaller than its number of random bits."""
    pad = f"{random.Random(number).getrandbits(size * 4):0{size}x}"
    return Record("hot", DATE, json.dumps({"n": number, "pad": pad}).encode())


def test_a_file_that_is_too_large_for_the_target_goes_in_pieces(spool: Spool) -> None:
    """Eight rows of 100 random bytes make more than 600 bytes; four of them do not.
    The next eight rows go in files that are small enough at once."""
    target = Small()
    uploader = Uploader(spool, target, UploadSettings(wait_ms=0))
    spool.append([noise(number) for number in range(1, 9)], NOW_MS)
    spool.commit(NOW_MS)
    assert [uploader.step(NOW_MS) for _ in range(3)] == [0, 0, 0]
    assert arrived(target) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert (uploader.stats.files, uploader.stats.divided, spool.stats().rows) == (2, 1, 0)
    spool.append([noise(number) for number in range(9, 17)], NOW_MS)
    spool.commit(NOW_MS)
    uploader.drain(NOW_MS)
    assert arrived(target) == list(range(1, 17)) and uploader.stats.divided == 1


def test_a_row_that_is_too_large_for_the_target_is_set_aside(
    spool: Spool, caplog: pytest.LogCaptureFixture
) -> None:
    """Row 2 alone has more than 600 bytes. It waits for a target that takes it; the others go on."""
    target = Small()
    spool.append([noise(1), noise(2, 2_000), noise(3)], NOW_MS)
    spool.commit(NOW_MS)
    Uploader(spool, target).drain(NOW_MS)
    assert arrived(target) == [1, 3]
    assert (spool.stats().rows, spool.stats().set_aside, spool.stats().counters["conflicts"]) == (1, 1, 0)
    ((seq, reason),) = verify(spool.path).set_aside
    assert seq == 2 and reason.startswith("the target refuses this row alone: cannot store v2/gw=gw1/")
    assert [entry.message for entry in caplog.records][-1] == "upload.refused"
    target.most = 2_000
    assert spool.restore_set_aside() == 1
    Uploader(spool, target).drain(NOW_MS)
    assert arrived(target) == [1, 2, 3] and spool.stats().rows == 0


def test_a_row_damaged_after_planning_is_left_out(spool: Spool) -> None:
    fill(spool, 3)
    spool.outgoing.plan(form_file(spool.outgoing.take("hot", DATE, 10, 10**6), "gw1", spool.spool_id)[0])
    flip_body(spool.path, 2)
    target = MemoryTarget()
    Uploader(spool, target).drain(NOW_MS)
    assert arrived(target) == [1, 3] and spool.stats().set_aside == 1


def test_a_row_damaged_after_its_upload_is_not_missed(spool: Spool) -> None:
    fill(spool, 3)
    planned, content = form_file(spool.outgoing.take("hot", DATE, 10, 10**6), "gw1", spool.spool_id)
    spool.outgoing.plan(planned)
    target = MemoryTarget()
    target.files[planned.name] = content
    flip_body(spool.path, 2)
    Uploader(spool, target).drain(NOW_MS)
    assert arrived(target) == [1, 2, 3] and len(list(target.names("v2"))) == 1


def test_a_plan_without_intact_rows_is_dropped(spool: Spool) -> None:
    fill(spool, 1)
    spool.outgoing.plan(form_file(spool.outgoing.take("hot", DATE, 10, 10**6), "gw1", spool.spool_id)[0])
    flip_body(spool.path, 1)
    target = MemoryTarget()
    Uploader(spool, target).drain(NOW_MS)
    assert target.files == {} and spool.outgoing.planned() is None


def test_a_crash_between_two_deletions_is_taken_up(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    spool.append([record(number, size=1000) for number in range(1, 3001)], NOW_MS)
    spool.commit(NOW_MS)
    target, delete, calls = MemoryTarget(), spool.outgoing._delete, iter([True, False])

    def crash_at_the_second(*span: Any) -> None:
        if not next(calls):
            raise Crash
        delete(*span)

    with monkeypatch.context() as patch:
        patch.setattr(spool.outgoing, "_delete", crash_at_the_second)
        with pytest.raises(Crash):
            Uploader(spool, target).drain(NOW_MS)
    assert 0 < spool.stats().rows < 3000
    Uploader(spool, target).drain(NOW_MS)
    assert spool.stats().rows == 0 and spool.outgoing.planned() is None
    assert arrived(target) == list(range(1, 3001)) and len(target.files) == 2


class Crash(BaseException):
    """The power goes off."""


class Crashing:
    """Passes calls on and pulls the plug before or after the n-th call of a step."""

    def __init__(self, inner: object, steps: frozenset[str], fuse: list[int], after: bool) -> None:
        self._inner, self._steps, self._fuse, self._after = inner, steps, fuse, after

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if name not in self._steps:
            return value

        def step(*arguments: Any, **named: Any) -> Any:
            self._fuse[0] -= 1
            if self._fuse[0] == 0 and not self._after:
                raise Crash
            result = value(*arguments, **named)
            if self._fuse[0] == 0:
                raise Crash
            return result

        return step


STEPS = frozenset({"plan", "put_if_absent", "get", "acknowledge", "take", "planned", "oldest"})


@pytest.mark.parametrize("after", [False, True])
def test_a_crash_between_any_two_steps_loses_and_doubles_nothing(tmp_path: Path, after: bool) -> None:
    for number in range(1, 100):
        path = tmp_path / f"{after}-{number}.db"
        target, fuse = MemoryTarget(), [number]
        crashed = False
        with closing(Spool(path, "gw1")) as spool:
            fill(spool, 5)
            fill(spool, 2, start=6, rule="cold")
            spool.outgoing = Crashing(spool.outgoing, STEPS, fuse, after)  # type: ignore[assignment]
            uploader = Uploader(spool, Crashing(target, STEPS, fuse, after), UploadSettings(rows_max=3))
            try:
                uploader.drain(NOW_MS)
            except Crash:
                crashed = True
        with closing(Spool(path, "gw1")) as spool:
            Uploader(spool, target, UploadSettings(rows_max=2)).drain(NOW_MS)  # other bounds: the plan holds
            assert spool.stats().rows == 0
        assert arrived(target) == [1, 2, 3, 4, 5, 6, 7], f"crash at step {number}"
        if not crashed:
            assert number > 12, "the story has more steps than that"
            return
    pytest.fail("the upload never ended")


def test_a_heartbeat_tells_what_the_spool_has_counted(tmp_path: Path) -> None:
    """A hundred rows of 64 + 20 bytes fill the spool, so one more is dropped."""
    settings = SpoolSettings(bytes_max=8_400, on_full="drop_newest", reserve_bytes=0)
    target = MemoryTarget()
    with closing(Spool(tmp_path / "spool.db", "gw 1", settings)) as spool:
        uploader = Uploader(spool, target, UploadSettings(wait_ms=60_000, heartbeat_ms=90_000))
        assert uploader.step(NOW_MS) == 60_000
        (name,) = target.files
        assert name == f"v2-heartbeats/gw=gw~201/{spool.spool_id}.json"
        told = json.loads(target.files[name])
        assert (told["gateway"], told["spool"], told["at"]) == ("gw 1", spool.spool_id, NOW_MS)
        assert (told["stored"], told["uploaded"], told["highest_seq"]) == (0, 0, 0)

        fill(spool, 100, size=20)
        fill(spool, 1, start=101, size=20)
        assert uploader.step(NOW_MS + 60_000, force=True) == 0
        assert json.loads(target.files[name]) == told, "not due yet"
        assert uploader.step(NOW_MS + 60_000) == 30_000
        fill(spool, 2, start=101, size=20)
        assert uploader.step(NOW_MS + 90_000) == 0, (
            "the two rows are old enough by now; the heartbeat comes after them"
        )
        told = json.loads(target.files[name])
        counted = ("stored", "uploaded", "waiting", "dropped", "highest_seq")
        assert [told[word] for word in counted] == [102, 102, 0, 1, 102]
        uploader.step(NOW_MS)
        assert json.loads(target.files[name])["at"] == NOW_MS, "the clock was set back: due at once"


class SettableClock(SystemClock):
    """The real clock, or one that was not set since boot."""

    set = False
    looks = 0

    def is_sane(self) -> bool:
        self.looks += 1
        return self.set

    def wait(self, condition: threading.Condition, timeout_ms: int | None) -> None:
        condition.wait(0.01)


def test_the_worker_waits_for_a_clock_that_is_set_and_uploads_then(spool: Spool) -> None:
    fill(spool, 3)
    target, clock = MemoryTarget(), SettableClock()
    worker = UploadWorker(Uploader(spool, target, UploadSettings(wait_ms=0)), clock)
    worker.start()
    wait_for(lambda: clock.looks > 1)
    assert target.files == {}
    clock.set = True
    wait_for(lambda: spool.stats().rows == 0)
    fill(spool, 2, start=4)
    wait_for(lambda: spool.stats().rows == 0)
    assert arrived(target) == [1, 2, 3, 4, 5]
    assert worker.close(PATIENCE_S)


def test_a_defect_does_not_end_the_uploads(spool: Spool, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(MemoryTarget):
        works = False

        def put_if_absent(self, name: str, content: bytes) -> bool:
            if not self.works:
                raise ZeroDivisionError
            return super().put_if_absent(name, content)

    fill(spool, 1)
    target, clock = Broken(), SettableClock()
    clock.set = True
    worker = UploadWorker(Uploader(spool, target, UploadSettings(wait_ms=0)), clock)
    worker.start()
    wait_for(lambda: "upload.defect" in caplog.text)
    target.works = True
    wait_for(lambda: spool.stats().rows == 0)
    assert worker.close(PATIENCE_S) and arrived(target) == [1]


def test_every_row_that_was_not_uploaded_is_counted_in_the_heartbeat(tmp_path: Path) -> None:
    """Loss is countable: rows that were stored are uploaded, waiting, set aside, or counted as gone."""
    target = MemoryTarget()
    row_bytes = record(1, size=200).size_bytes
    bounds = SpoolSettings(bytes_max=6 * row_bytes, on_full="drop_oldest", age_max_ms=10_000)
    with closing(Spool(tmp_path / "spool.db", "gw1", bounds)) as spool:
        uploader = Uploader(spool, target, UploadSettings(rows_max=2, heartbeat_ms=1))
        spool.append([record(number, size=200) for number in range(1, 9)], NOW_MS)  # 1 and 2 are dropped
        spool.commit(NOW_MS)
        flip_body(tmp_path / "spool.db", 4)  # set aside when it is read
        assert uploader.step(NOW_MS, force=True) == 0  # 3 and 5
        rows = spool.outgoing.take("hot", DATE, 2, 10**6)
        spool.outgoing.plan(form_file(rows, "gw1", spool.spool_id)[0])  # 6 and 7 are being uploaded
        spool.append([record(9, size=200)], NOW_MS + 20_000)  # 8 and what was set aside expire
        spool.commit(NOW_MS + 20_000)
        uploader.step(NOW_MS + 20_000, force=True)
        told = json.loads(target.files[f"v2-heartbeats/gw=gw1/{spool.spool_id}.json"])
    assert arrived(target) == [3, 5, 6, 7]
    counted = {
        name: told[name] for name in ("stored", "uploaded", "waiting", "set_aside", "dropped", "expired")
    }
    assert counted == {"stored": 9, "uploaded": 4, "waiting": 1, "set_aside": 0, "dropped": 2, "expired": 2}
    assert told["highest_seq"] == told["stored"] and told["lost"] == 0
