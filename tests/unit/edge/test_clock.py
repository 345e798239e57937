"""The steady time: never backwards, whatever somebody does to the wall clock."""

from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st

from edge.clock import SANE_FROM_MS, SimulatedClock, SteadyTime, SystemClock
from tests.support.waiting import PATIENCE_S


def test_follows_a_wall_clock_that_runs_evenly() -> None:
    steady = SteadyTime()
    assert [steady.read(1_000 + at, at) for at in (0, 10, 500)] == [1_000, 1_010, 1_500]
    assert steady.steps == 0


def test_a_jump_ahead_is_followed_at_once_and_counted() -> None:
    steady = SteadyTime()
    steady.read(0, 0)  # a board without battery boots in 1970
    assert steady.read(SANE_FROM_MS, 100) == SANE_FROM_MS
    assert steady.steps == 1


def test_a_clock_set_back_makes_time_slower_until_it_has_caught_up() -> None:
    steady, at = SteadyTime(), SANE_FROM_MS
    steady.read(at + 100_000, 0)
    # 10 s back: nine tenths of the speed catch up one second in ten, so after 100 s both agree again.
    assert steady.read(at + 90_000, 0) == at + 100_000
    assert steady.read(at + 140_000, 50_000) == at + 145_000
    assert steady.read(at + 190_000, 100_000) == at + 190_000
    assert steady.read(at + 191_000, 101_000) == at + 191_000
    assert steady.steps == 1


@given(st.lists(st.tuples(st.integers(-10_000, 10_000), st.integers(0, 1_000)), max_size=40))
def test_never_goes_back(moves: list[tuple[int, int]]) -> None:
    steady, wall, monotonic = SteadyTime(), 50_000, 0
    before = steady.read(wall, monotonic)
    for jump, elapsed in moves:
        monotonic += elapsed
        wall += elapsed + jump
        now = steady.read(wall, monotonic)
        assert now >= before
        assert now >= wall
        before = now


def test_the_simulated_clock_moves_only_when_told() -> None:
    clock = SimulatedClock(5_000)
    assert (clock.now_ms(), clock.now_ms(), clock.is_sane()) == (5_000, 5_000, False)
    clock.move(250)
    assert (clock.now_ms(), clock.monotonic_ms()) == (5_250, 250)
    clock.move(750)
    assert clock.now_ms() == 6_000
    clock.set_wall(SANE_FROM_MS)
    assert clock.is_sane()
    clock.now_ms()
    assert clock.steps == 1


def test_time_goes_on_from_an_earlier_run_when_the_clock_was_set_back_in_between() -> None:
    clock, hour = SimulatedClock(SANE_FROM_MS), 3_600_000
    clock.go_on_from(SANE_FROM_MS + hour)
    assert (clock.now_ms(), clock.steps) == (SANE_FROM_MS + hour, 1)
    clock.move(1_000)
    assert clock.now_ms() == SANE_FROM_MS + hour + 900, "slower, until the wall clock has caught up"
    assert clock.ahead_ms == hour - 100
    clock.set_wall(SANE_FROM_MS + 2 * hour)
    assert (clock.now_ms(), clock.ahead_ms) == (SANE_FROM_MS + 2 * hour, 0)


def test_a_clock_that_is_not_set_yet_does_not_slow_time_down() -> None:
    clock = SimulatedClock(0)
    clock.go_on_from(SANE_FROM_MS)
    clock.move(1_000)
    assert (clock.now_ms(), clock.is_sane()) == (SANE_FROM_MS + 1_000, False)


def test_who_waits_on_the_simulated_clock_wakes_when_it_was_moved_far_enough() -> None:
    clock, condition = SimulatedClock(), threading.Condition()
    woken_at: list[int] = []
    ready = threading.Event()

    def wait() -> None:
        with condition:
            ready.set()
            while clock.monotonic_ms() < 500:
                clock.wait(condition, 500 - clock.monotonic_ms())
            woken_at.append(clock.monotonic_ms())

    thread = threading.Thread(target=wait)
    thread.start()
    ready.wait(PATIENCE_S)
    for _ in range(5):
        assert not woken_at
        clock.move(100)
    thread.join(PATIENCE_S)
    assert woken_at == [500]


def test_the_system_clock_waits_no_longer_than_asked() -> None:
    clock = SystemClock()
    before = clock.monotonic_ms()
    condition = threading.Condition()
    with condition:
        clock.wait(condition, 20)
    assert clock.monotonic_ms() - before >= 15
    assert clock.is_sane()
