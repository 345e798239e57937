"""`enableCache`: results wait in a bounded file, in order, over restarts, and leave it when they are
delivered."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from edge.clock import SystemClock
from sinks import Retry, SinkSettings
from sinks.cache import CachedDelivery, cache_path, mark_of
from sinks.cache.store import CacheStore
from tests.support.waiting import PATIENCE_MS, PATIENCE_S, wait_for
from tests.unit.sinks.support import Bench, Scripted, rows, taken

AWAY = [Retry("away")] * 10_000
"""A destination that does not come back."""


@dataclass(frozen=True)
class Number:
    """A token as the outbox gives it."""

    last: int


class Cached:
    """A cached delivery over a scripted sink; another one on the same folder goes on with its file."""

    def __init__(self, folder: Path, sink: Scripted, **settings: Any) -> None:
        self.bench = Bench(sink, clock=SystemClock())
        self.path = cache_path(folder, "hot/actions/0/scripted")
        written = {"enableCache": True, "retryInterval": 5, "retryMaxInterval": 5, **settings}
        context = self.bench.delivery_context
        checked = SinkSettings.model_validate(written)
        self.delivery = CachedDelivery(lambda settings, context: sink, checked, context, self.path)

    def submit(self, *numbers: int) -> None:
        for number in numbers:
            wait_for(partial(self.delivery.submit, rows({"n": number}), Number(number)))

    def stored(self, *numbers: int) -> None:
        """Wait for the receipts of these numbers."""
        wanted = [(Number(number), "delivered") for number in numbers]
        assert self.bench.await_receipts(len(wanted)) == wanted

    def close(self, within_ms: int = PATIENCE_MS) -> int:
        return self.delivery.close(self.bench.clock.monotonic_ms() + within_ms)


def count_in(path: Path) -> int:
    """How many results the file holds."""
    with closing(sqlite3.connect(path)) as database:
        (count,) = database.execute("SELECT count(*) FROM results").fetchone()
    return int(count)


def test_results_pass_in_order_and_leave_the_file(tmp_path: Path) -> None:
    sink = Scripted()
    cached = Cached(tmp_path, sink)
    cached.submit(*range(1, 301))
    wait_for(lambda: len(sink.taken) == 300)
    assert taken(sink) == list(range(1, 301))
    wait_for(lambda: cached.delivery.stats().queued == 0)
    assert cached.close() == 0
    assert count_in(cached.path) == 0
    assert mark_of(cached.path) == 300


def test_a_receipt_means_that_the_result_is_on_the_disk(tmp_path: Path) -> None:
    cached = Cached(tmp_path, Scripted(*AWAY))
    cached.submit(1, 2, 3)
    cached.stored(1, 2, 3)
    assert count_in(cached.path) == 3
    assert cached.close(50) == 0


def test_the_file_goes_on_after_a_restart_before_anything_new(tmp_path: Path) -> None:
    first = Cached(tmp_path, Scripted(*AWAY))
    first.submit(1, 2, 3)
    first.stored(1, 2, 3)
    assert first.close(50) == 0
    sink = Scripted()
    second = Cached(tmp_path, sink)
    second.submit(4)
    wait_for(lambda: len(sink.taken) == 4)
    assert taken(sink) == [1, 2, 3, 4]
    second.close()


def test_without_a_new_result_the_file_is_sent_too(tmp_path: Path) -> None:
    first = Cached(tmp_path, Scripted(*AWAY))
    first.submit(1)
    first.stored(1)
    first.close(50)
    sink = Scripted()
    second = Cached(tmp_path, sink)
    wait_for(lambda: taken(sink) == [1])
    second.close()


def test_what_the_journal_gives_again_is_not_stored_twice(tmp_path: Path) -> None:
    first = Cached(tmp_path, Scripted(*AWAY))
    first.submit(1, 2)
    first.stored(1, 2)
    first.close(50)
    sink = Scripted()
    second = Cached(tmp_path, sink)
    second.submit(1, 2, 3)
    wait_for(lambda: len(sink.taken) == 3)
    second.close()
    assert taken(sink) == [1, 2, 3]


def test_a_full_file_holds_the_source_back(tmp_path: Path) -> None:
    cached = Cached(tmp_path, Scripted(*AWAY), maxDiskCache=3)
    cached.submit(1, 2, 3)
    cached.stored(1, 2, 3)
    assert not cached.delivery.submit(rows({"n": 4}), Number(4))
    assert cached.close(50) == 0


def test_or_loses_its_oldest_results_where_the_settings_say_so(tmp_path: Path) -> None:
    sink = Scripted(*AWAY)
    cached = Cached(tmp_path, sink, maxDiskCache=3, memoryCacheThreshold=1, disableBufferFullDiscard=False)
    cached.submit(*range(1, 8))
    wait_for(lambda: cached.delivery.stats().dropped == 4)
    sink.script.clear()
    wait_for(lambda: len(sink.taken) == 3)
    assert taken(sink) == [1, 6, 7]  # 1 was on its way
    cached.close()


def test_late_results_are_marked(tmp_path: Path) -> None:
    sink = Scripted(*AWAY)
    cached = Cached(tmp_path, sink, resendIndicatorField="again", memoryCacheThreshold=1)
    cached.submit(1)
    wait_for(lambda: cached.delivery.stats().state == "retrying")
    cached.submit(2)
    cached.stored(1, 2)
    sink.script.clear()
    wait_for(lambda: len(sink.taken) == 2)
    assert sink.taken == [b'[{"n":1}]', b'[{"n":2,"again":true}]']
    cached.close()


def test_results_that_a_restart_found_in_the_file_are_marked(tmp_path: Path) -> None:
    first = Cached(tmp_path, Scripted(*AWAY))
    first.submit(1, 2)
    first.stored(1, 2)
    first.close(50)
    sink = Scripted()
    second = Cached(tmp_path, sink, resendIndicatorField="again")
    second.submit(3)
    wait_for(lambda: len(sink.taken) == 3)
    assert sink.taken == [b'[{"n":1,"again":true}]', b'[{"n":2,"again":true}]', b'[{"n":3}]']
    second.close()


def test_a_stop_may_forget_the_file(tmp_path: Path) -> None:
    cached = Cached(tmp_path, Scripted(*AWAY), cleanCacheAtStop=True)
    cached.submit(1, 2)
    cached.stored(1, 2)
    wait_for(lambda: cached.delivery.stats().state == "retrying")
    cached.close()
    assert count_in(cached.path) == 0


def test_values_survive_the_file(tmp_path: Path) -> None:
    row = {
        "big": 2**80,
        "raw": b"\x00\xff",
        "nan": float("inf"),
        "text": "ä",
        "none": None,
        "list": [1, {"a": True}],
    }
    with closing(CacheStore(tmp_path / "a.db")) as store:
        store.change([(True, rows(row))], 7, 0)
    with closing(CacheStore(tmp_path / "a.db")) as store:
        (found,) = store.read(0, 10)
    assert found.late
    assert found.emission.inserted == [row]


def test_a_damaged_file_is_moved_aside(tmp_path: Path) -> None:
    cached = Cached(tmp_path, Scripted(*AWAY))
    cached.path.write_bytes(b"rubbish" * 1000)
    cached.submit(1)
    cached.stored(1)
    assert cached.path.with_suffix(".damaged").exists()
    cached.close(50)


@pytest.mark.long
def test_a_disk_that_refuses_holds_the_source_back_until_it_works(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.write_text("no folder")
    sink = Scripted()
    cached = Cached(folder, sink, memoryCacheThreshold=2)
    cached.submit(1, 2)
    assert not cached.delivery.submit(rows({"n": 3}), Number(3))
    wait_for(lambda: "cache:" in cached.delivery.stats().last_error)
    folder.unlink()
    cached.submit(3)
    wait_for(lambda: len(sink.taken) == 3)
    assert taken(sink) == [1, 2, 3]
    cached.close()


def test_the_next_version_of_an_action_waits_for_the_one_before(tmp_path: Path) -> None:
    gate = threading.Event()
    slow = Scripted()
    slow.gate = gate
    first = Cached(tmp_path, slow)
    first.submit(1)
    first.stored(1)
    wait_for(lambda: "send" in slow.calls)
    sink = Scripted()
    second = Cached(tmp_path, sink)
    second.submit(2)
    assert not sink.taken
    closing = threading.Thread(target=first.close)
    closing.start()
    gate.set()
    closing.join(PATIENCE_S)
    wait_for(lambda: len(sink.taken) == 1)
    assert (taken(slow), taken(sink)) == ([1], [2])
    second.close()


@pytest.mark.parametrize("key", ["hot/actions/0/mqtt", "x" * 500, "../../etc/passwd", "a b\n"])
def test_every_key_is_one_file_of_the_folder(tmp_path: Path, key: str) -> None:
    path = cache_path(tmp_path, key)
    assert path.parent == tmp_path
    CacheStore(path).close()
