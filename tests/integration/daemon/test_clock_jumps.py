"""The wall clock of a real daemon: in 1970 at first, set ahead and back while windows are open;
by libfaketime."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from tests.integration.daemon.support import STREAM, Process, Publisher, daemon, publisher
from tests.support.brokers import Mosquitto
from tests.support.waiting import wait_for

COUNTS = (
    STREAM
    + """
rules:
  - id: counts
    sql: SELECT count(*) AS c, window_start() AS from_ms, window_end() AS to_ms
         FROM m GROUP BY TUMBLINGWINDOW(ss, 1)
    actions: [{file: {path: counts.jsonl, sendSingle: true}}]
"""
)
HOUR_S = 3_600


def library() -> Path:
    found = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
    if found is None:
        pytest.skip("libfaketime is not installed; on Debian: apt-get install faketime")
    return found


def fake_clock(offset: str) -> dict[str, str]:
    """The environment of a process whose wall clock is so far off."""
    return {"LD_PRELOAD": str(library()), "FAKETIME": offset, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


def until_windows(gateway: Process, plant: Publisher, count: int) -> int:
    """Send until the rule has closed `count` windows; how many messages that took."""
    sent = 0

    def is_closed() -> bool:
        nonlocal sent
        plant.send("plant/a", {"n": sent})
        sent += 1
        return len(gateway.output("counts.jsonl")) >= count

    wait_for(is_closed, f"{count} windows")
    return sent


def write_offset(path: Path, offset: str) -> None:
    """Write a file of libfaketime, which reads it at any moment: whole, or not at all."""
    draft = path.with_suffix(".draft")
    draft.write_text(f"{offset}\n")
    draft.rename(path)


@pytest.mark.broker
def test_windows_go_on_when_the_clock_is_set(broker: Mosquitto, tmp_path: Path) -> None:
    """Not set yet, as after a boot without a battery: the gateway says so until it is. Ahead: at once.
    Back: time goes on, slower. No event is lost or counted twice, and no window comes again."""
    offset = tmp_path / "offset"
    write_offset(offset, f"-{int(time.time()) - HOUR_S}")
    fake = {
        "LD_PRELOAD": str(library()),
        "FAKETIME_TIMESTAMP_FILE": str(offset),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    with (
        daemon(tmp_path, broker.url, {"counts.yaml": COUNTS}, **fake) as gateway,
        publisher(broker.port) as plant,
    ):
        assert not gateway.status()["clock"]["sane"]
        status, reasons = gateway.get("/readyz")
        assert status == 503 and "clock: it has not been set since boot" in reasons
        write_offset(offset, "+0")
        gateway.wait_ready()
        sent = until_windows(gateway, plant, 2)
        write_offset(offset, f"+{HOUR_S}")
        sent += until_windows(gateway, plant, 4)
        write_offset(offset, "+0")
        sent += until_windows(gateway, plant, 6)
        wait_for(
            lambda: sum(row["c"] for row in gateway.output("counts.jsonl")) >= sent, what="the last window"
        )
        windows = [(row["from_ms"], row["to_ms"]) for row in gateway.output("counts.jsonl")]
        assert sum(row["c"] for row in gateway.output("counts.jsonl")) == sent
        assert all(end - start == 1_000 for start, end in windows)
        assert windows == sorted(set(windows))
        assert windows[-1][0] - windows[0][0] >= HOUR_S * 1_000
        assert gateway.status()["clock"]["steps"] == 3
        assert "level=warning event=clock.stepped by_ms=" in gateway.log()
        assert gateway.status()["defects"] == 0


@pytest.mark.broker
def test_a_restart_an_hour_earlier_is_logged_and_windows_go_on(broker: Mosquitto, tmp_path: Path) -> None:
    with daemon(tmp_path, broker.url, {"counts.yaml": COUNTS}) as gateway, publisher(broker.port) as plant:
        gateway.wait_ready()
        sent = until_windows(gateway, plant, 1)
        assert gateway.stop() == 0
        gateway.environment.update(fake_clock(f"-{HOUR_S}"))
        gateway.start()
        gateway.wait_ready()
        sent += until_windows(gateway, plant, 3)
        wait_for(
            lambda: sum(row["c"] for row in gateway.output("counts.jsonl")) >= sent, what="the last window"
        )
        assert gateway.status()["clock"]["steps"] == 1
        stepped = re.search(r"level=warning event=clock.stepped by_ms=(-?\d+) note=", gateway.log())
        assert stepped and -HOUR_S * 1_000 - 60_000 < int(stepped[1]) <= -HOUR_S * 1_000 + 60_000
        assert sum(row["c"] for row in gateway.output("counts.jsonl")) == sent
        assert gateway.stop() == 0
