"""The queue between threads."""

from __future__ import annotations

import threading

import pytest

from edge.intake.queue import Intake
from tests.support.waiting import PATIENCE_S


def test_everything_that_waits_is_taken_at_once() -> None:
    intake: Intake[str] = Intake()
    intake.put("a")
    intake.put("b")
    assert intake.take_items() == ["a", "b"]
    assert not intake.items


def test_a_put_during_the_turn_prevents_the_sleep() -> None:
    """Nothing may be missed between the last look and the sleep; a lost wake-up would hang here."""
    intake: Intake[str] = Intake()
    for late in (lambda: intake.put("late"), intake.wake):
        intake.take_calls()
        other = threading.Thread(target=late)
        other.start()
        other.join()
        intake.take_items()
        intake.poller.wait(None)


def test_a_call_runs_in_the_loop_and_returns_its_result() -> None:
    intake: Intake[str] = Intake()
    ran_in: list[str] = []
    answers: list[str] = []

    def answer() -> str:
        ran_in.append(threading.current_thread().name)
        return "answer"

    def ask() -> None:
        answers.append(intake.call(answer, PATIENCE_S))

    thread = threading.Thread(target=ask)
    thread.start()
    while not ran_in:
        intake.poller.wait(1_000)
        for call in intake.take_calls():
            call()
    thread.join(PATIENCE_S)
    assert answers == ["answer"]
    assert ran_in == [threading.current_thread().name]


def test_a_call_that_is_not_answered_times_out_and_is_not_run_later() -> None:
    intake: Intake[str] = Intake()
    ran: list[bool] = []
    with pytest.raises(TimeoutError):
        intake.call(lambda: ran.append(True), 0.01)
    for call in intake.take_calls():
        call()
    assert not ran
    intake.close()
    with pytest.raises(TimeoutError):
        intake.call(lambda: ran.append(True), 5)


def test_what_a_call_raises_reaches_the_caller() -> None:
    intake: Intake[str] = Intake()

    def loop() -> None:
        intake.poller.wait(None)
        for call in intake.take_calls():
            call()

    thread = threading.Thread(target=loop)
    thread.start()
    with pytest.raises(ZeroDivisionError):
        intake.call(lambda: 1 // 0, PATIENCE_S)
    thread.join(PATIENCE_S)
