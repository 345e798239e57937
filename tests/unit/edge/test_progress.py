"""The progress bar of commands that read a file: on a terminal one line, redrawn; elsewhere nothing."""

from __future__ import annotations

import io

import pytest

from edge.clock import SimulatedClock
from edge.commands.shared.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, clock = Terminal(), SimulatedClock()
    monkeypatch.setattr("sys.stderr", terminal)
    progress = Progress(1000, clock)
    progress.add(10, 100)  # drawn a moment ago
    clock.move(500)
    progress.add(40, 500)
    progress.close()
    assert terminal.getvalue() == "\r[###############...............]  50%  50 events, 100/s\x1b[K\r\x1b[K"


def test_the_count_alone_where_the_total_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, clock = Terminal(), SimulatedClock()
    monkeypatch.setattr("sys.stderr", terminal)
    progress = Progress(None, clock)
    clock.move(1000)
    progress.add(1234, 0)
    assert terminal.getvalue() == "\r1,234 events, 1,234/s\x1b[K"


def test_nothing_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    file, clock = io.StringIO(), SimulatedClock()
    monkeypatch.setattr("sys.stderr", file)
    progress = Progress(1000, clock)
    clock.move(1000)
    progress.add(10, 100)
    progress.close()
    assert not file.getvalue()
