"""Questions that a forked child answers: what each end of the child means."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from edge.clock import SystemClock
from edge.config import Config
from edge.monitor.apart import Apart
from sql.errors import DataError


def apart(limit_ms: int = 20_000) -> Apart:
    config = Config.model_validate({"http": {"answerTimeoutMs": limit_ms}})
    daemon: Any = SimpleNamespace(config=config, clock=SystemClock(), ask=lambda question: question())
    return Apart(daemon)


def raising(error: Exception) -> Callable[[], bytes]:
    def work() -> bytes:
        raise error

    return work


def test_a_child_answers_with_the_state_of_the_gateway() -> None:
    gateway, rows = os.getpid(), bytes(100_000)
    assert apart().answer(lambda: rows + str(os.getppid()).encode()) == rows + str(gateway).encode()


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def slow() -> bytes:
    time.sleep(60)
    return b""


def test_what_cannot_be_answered_is_told() -> None:
    with pytest.raises(DataError, match="no number"):
        apart().answer(raising(DataError("no number")))


def test_a_defect_is_raised_where_the_question_was_asked() -> None:
    with pytest.raises(RuntimeError, match=r"KeyError\('gone'\)"):
        apart().answer(raising(KeyError("gone")))


def test_memory_and_time_are_bounded() -> None:
    with pytest.raises(DataError, match="more than 256 MB"):
        apart().answer(lambda: bytes(10**9))
    with pytest.raises(DataError, match="longer than 100 ms"):
        apart(100).answer(slow)


@pytest.mark.long
def test_a_child_that_takes_too_long_is_ended_and_nothing_of_it_is_left(tmp_path: Path) -> None:
    def work() -> bytes:
        (tmp_path / "pid").write_text(str(os.getpid()))
        return slow()

    asked, before = apart(1_000), open_files()
    with pytest.raises(DataError):
        asked.answer(work)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
    for _ in range(20):
        with pytest.raises(DataError):
            asked.answer(raising(DataError("no")))
    assert open_files() < before + 20
