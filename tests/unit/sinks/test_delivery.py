"""Delivery: order, retries, dead letters, back-pressure, receipts and closing, with a sink
that follows a script."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from rules.secrets import Secret
from sinks import Fatal, Reject, Retry
from sinks.builtin.rest import RestSettings
from tests.support.waiting import PATIENCE_MS, wait_for
from tests.unit.sinks.support import Bench, LeapingClock, Scripted, rows, taken


def submit(bench: Bench, *numbers: int) -> None:
    """Queue one emission per number, its token the number."""
    for number in numbers:
        assert bench.delivery.submit(rows({"n": number}), number)


def held(*script: Exception | None, **settings: Any) -> tuple[Bench, Scripted]:
    """A delivery whose worker is caught inside `send` with emission 0 until `gate` is set."""
    sink = Scripted(None, *script)
    sink.gate.clear()
    bench = Bench(sink, settings, LeapingClock())
    submit(bench, 0)
    wait_for(lambda: "send" in sink.calls)
    return bench, sink


def test_delivers_in_order_and_gives_receipts() -> None:
    sink = Scripted()
    bench = Bench(sink)
    submit(bench, *range(50))
    assert bench.await_receipts(50) == [(number, "delivered") for number in range(50)]
    assert taken(sink) == list(range(50))
    stats = bench.delivery.stats()
    assert (stats.state, stats.sent, stats.queued) == ("ok", 50, 0)
    assert bench.close() == 0
    assert sink.calls[0] == "open"
    assert sink.calls[-1] == "close"


def test_what_waits_is_handed_over_together() -> None:
    bench, sink = held()
    submit(bench, *range(1, 10))
    sink.gate.set()
    bench.await_receipts(10)
    assert sink.batches == [1, 9]
    assert bench.close() == 0


def test_retry_keeps_the_order_and_never_repeats_what_was_done() -> None:
    bench, sink = held(Retry("busy", done=2), Retry("busy"), Retry("busy", done=1))
    submit(bench, *range(1, 8))
    sink.gate.set()
    bench.await_receipts(8)
    assert taken(sink) == list(range(8))
    stats = bench.delivery.stats()
    assert (stats.sent, stats.retried, stats.rejected, stats.last_error) == (8, 3, 0, "busy")
    assert bench.close() == 0


def test_waits_grow_to_the_maximum_with_jitter() -> None:
    clock = LeapingClock()
    sink = Scripted(*[Retry("busy")] * 8)
    bench = Bench(sink, {"retryInterval": 100, "retryMaxInterval": 1000}, clock)
    submit(bench, 1)
    bench.await_receipts(1)
    steps = [100, 200, 400, 800, 1000, 1000, 1000, 1000]
    assert len(clock.waits) == 8
    assert all(step / 2 <= wait <= step for step, wait in zip(steps, clock.waits, strict=True))
    assert len({wait / step for step, wait in zip(steps, clock.waits, strict=True)}) > 4
    assert bench.close() == 0


def test_the_destination_may_ask_for_a_longer_wait_but_not_for_ever() -> None:
    clock = LeapingClock()
    sink = Scripted(Retry("busy", after_ms=30_000), Retry("busy", after_ms=10**12))
    bench = Bench(sink, {}, clock)
    submit(bench, 1)
    bench.await_receipts(1)
    assert clock.waits == [30_000, 3_600_000]
    assert bench.close() == 0


def test_a_bounded_number_of_retries_ends_in_the_dead_letters() -> None:
    sink = Scripted(*[Retry("busy")] * 4)
    bench = Bench(sink, {"retryCount": 3}, LeapingClock())
    submit(bench, 1, 2)
    assert bench.await_receipts(2)[0] == (1, "rejected")
    assert bench.letters.kept[0]["reason"] == "given up after 3 retries: busy"
    assert taken(sink) == [2]
    assert bench.close() == 0


def test_a_rejected_message_becomes_a_dead_letter_and_the_others_go_on() -> None:
    bench, sink = held(Reject("HTTP 400: no", done=1))
    submit(bench, 1, 2, 3)
    sink.gate.set()
    assert dict(bench.await_receipts(4)) == {0: "delivered", 1: "delivered", 2: "rejected", 3: "delivered"}
    assert taken(sink) == [0, 1, 3]
    assert bench.letters.kept == [
        {
            "at_ms": bench.letters.kept[0]["at_ms"],
            "reason": "HTTP 400: no",
            "payload": b'[{"n":2}]',
            "rule": "hot",
            "sink": "scripted",
        }
    ]
    assert bench.letters.synced == 1
    assert bench.delivery.stats().rejected == 1
    assert bench.close() == 0


def test_dead_letters_that_cannot_be_written_hold_the_message_back() -> None:
    sink = Scripted(Reject("no"))
    bench = Bench(sink, {}, LeapingClock())
    bench.letters.full = 3
    submit(bench, 1)
    assert bench.await_receipts(1) == [(1, "rejected")]
    assert len(bench.letters.kept) == 1
    assert bench.delivery.stats().retried == 3
    assert bench.close() == 0


def test_rows_that_cannot_be_rendered_are_dead_letters_too() -> None:
    bench = Bench(Scripted(), {"dataField": "values"})
    assert bench.delivery.submit(rows({"n": 1}), "token")
    assert bench.await_receipts(1) == [("token", "rejected")]
    assert bench.letters.kept[0]["payload"] == b'[{"n":1}]'
    assert bench.close() == 0


def test_fatal_closes_backs_off_and_opens_again() -> None:
    sink = Scripted(Fatal("password refused"), on_open=[Fatal("no route"), None, None])
    bench = Bench(sink, {}, LeapingClock())
    submit(bench, 1)
    assert bench.await_receipts(1) == [(1, "delivered")]
    assert sink.calls == ["open", "close", "open", "send", "close", "open", "send"]
    assert bench.delivery.stats().state == "ok"
    assert bench.close() == 0


def test_the_state_is_visible_while_a_sink_is_degraded() -> None:
    clock = LeapingClock()
    sink = Scripted(on_open=[Fatal("bad certificate")] * 1000)
    bench = Bench(sink, {"retryMaxInterval": 1000}, clock)
    submit(bench, 1)
    stats = wait_for(lambda: (now := bench.delivery.stats()).state == "degraded" and now)
    assert (stats.last_error, stats.queued) == ("bad certificate", 1)
    assert bench.close(0) == 1


def test_a_defect_in_a_sink_costs_one_message_only() -> None:
    sink = Scripted(KeyError("x"), KeyError("x"), KeyError("x"))
    bench = Bench(sink, {}, LeapingClock())
    submit(bench, 1)
    assert bench.await_receipts(1) == [(1, "rejected")]
    submit(bench, 2)
    assert bench.await_receipts(2)[1] == (2, "delivered")
    assert bench.letters.kept[0]["reason"] == "KeyError: 'x'"
    assert bench.close() == 0


def test_a_defect_while_opening_costs_no_message() -> None:
    sink = Scripted(on_open=[KeyError("x")] * 6)
    bench = Bench(sink, {}, LeapingClock())
    submit(bench, 1)
    assert bench.await_receipts(1) == [(1, "delivered")]
    assert bench.close() == 0


def test_a_full_queue_holds_the_caller_back() -> None:
    bench, sink = held(bufferLength=2)
    submit(bench, 1, 2)
    assert not bench.delivery.submit(rows({"n": 3}), 3)
    assert bench.delivery.stats().queued == 3
    sink.gate.set()
    wait_for(lambda: bench.delivery.submit(rows({"n": 3}), 3))
    bench.await_receipts(4)
    assert taken(sink) == [0, 1, 2, 3]
    assert bench.delivery.stats().dropped == 0
    assert bench.close() == 0


def test_a_full_queue_may_drop_the_oldest_and_counts_it() -> None:
    bench, sink = held(bufferLength=2, disableBufferFullDiscard=False)
    submit(bench, 1, 2, 3, 4)
    assert bench.receipts == [(1, "dropped"), (2, "dropped")]
    sink.gate.set()
    bench.await_receipts(5)
    assert taken(sink) == [0, 3, 4]
    assert bench.delivery.stats().dropped == 2
    assert bench.close() == 0


def test_batches_join_rows_up_to_the_size() -> None:
    sink = Scripted()
    bench = Bench(sink, {"batchSize": 3, "lingerInterval": "1h"})
    submit(bench, 1, 2, 3)
    assert len(bench.await_receipts(3)) == 3
    assert sink.taken == [b'[{"n":1},{"n":2},{"n":3}]']
    submit(bench, 4)
    assert bench.close() == 0
    assert sink.taken[1:] == [b'[{"n":4}]']


def test_an_unfilled_batch_leaves_after_the_linger_interval() -> None:
    clock = LeapingClock()
    sink = Scripted()
    bench = Bench(sink, {"batchSize": 100, "lingerInterval": 700}, clock)
    submit(bench, 1)
    bench.await_receipts(1)
    assert clock.monotonic_ms() == 700
    assert bench.close() == 0


def test_a_batch_larger_than_the_queue_leaves_when_the_queue_is_full() -> None:
    sink = Scripted()
    bench = Bench(sink, {"batchSize": 100, "lingerInterval": "1h", "bufferLength": 2})
    submit(bench, 1, 2)
    bench.await_receipts(2)
    assert sink.taken == [b'[{"n":1},{"n":2}]']
    assert bench.close() == 0


def test_close_flushes_and_then_takes_nothing_more() -> None:
    sink = Scripted()
    sink.gate.clear()
    bench = Bench(sink)
    submit(bench, *range(20))
    threading.Timer(0.02, sink.gate.set).start()
    assert bench.close() == 0
    assert taken(sink) == list(range(20))
    assert not bench.delivery.submit(rows({"n": 99}), 99)
    assert bench.close() == 0
    assert bench.delivery.stats().state == "closed"


def test_close_keeps_to_its_bound_and_leaves_the_rest_unacknowledged() -> None:
    sink = Scripted(*[Retry("busy")] * 100_000)
    bench = Bench(sink, {"retryInterval": 10, "retryMaxInterval": 20})
    submit(bench, 1, 2, 3)
    wait_for(lambda: bench.delivery.stats().state == "retrying")
    assert bench.close(within_ms=100) == 3
    assert bench.receipts == []


def test_a_later_deadline_does_not_replace_an_earlier_one() -> None:
    """As where an action with a file closes: its worker has the whole time, a sink that is away has none."""
    sink = Scripted(*[Retry("away")] * 1_000)
    sink.gate.clear()
    bench = Bench(sink, {"retryInterval": 1, "retryMaxInterval": 1})
    submit(bench, 1)
    wait_for(lambda: sink.calls[-1:] == ["send"])
    bench.delivery.begin_close(bench.clock.monotonic_ms())
    bench.delivery.begin_close(bench.clock.monotonic_ms() + PATIENCE_MS)
    sink.gate.set()
    assert bench.close() == 1
    assert sink.calls == ["open", "send", "close"]


def test_close_does_not_wait_for_a_sink_that_hangs() -> None:
    sink = Scripted()
    sink.gate.clear()
    bench = Bench(sink)
    submit(bench, 1)
    assert bench.close(within_ms=50) == 1
    sink.gate.set()
    wait_for(lambda: sink.calls[-1] == "close")
    assert bench.receipts == []


def test_close_without_any_emission_is_immediate() -> None:
    sink = Scripted()
    bench = Bench(sink)
    assert bench.close(0) == 0
    assert sink.calls == []


def test_one_failing_sink_does_not_slow_another() -> None:
    sick = Bench(Scripted(*[Retry("down")] * 100_000), {"retryInterval": "1h", "retryMaxInterval": "1h"})
    well = Bench(Scripted())
    submit(sick, *range(10))
    submit(well, *range(10))
    assert len(well.await_receipts(10)) == 10
    assert sick.receipts == []
    assert well.close() == 0
    assert sick.close(0) == 10


def test_secrets_appear_neither_in_errors_nor_logs_nor_dead_letters(caplog: pytest.LogCaptureFixture) -> None:
    hidden = "s3cret-value"
    settings = RestSettings.model_validate(
        {"url": "http://h/", "headers": {"A": Secret(hidden)}, "retryCount": 1}
    )
    failures = [Retry(f"sent {hidden}"), KeyError(hidden), Fatal(f"no {hidden}"), Reject(f"bad {hidden}")]
    bench = Bench(Scripted(*failures), settings, LeapingClock())
    submit(bench, 1)
    bench.await_receipts(1)
    shown = repr(bench.delivery.stats()) + repr(bench.letters.kept)
    shown += "".join(repr(vars(record)) + caplog.handler.format(record) for record in caplog.records)
    assert "***" in shown
    assert hidden not in shown
    assert bench.close() == 0
