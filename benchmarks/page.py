"""The cost of an open page: processor time of the gateway with the page in a headless Chromium,
and without, at a steady rate.

The loop shares one interpreter with the HTTP server, so what the page takes of a core is missing at intake.
The processes that look for near misses are niced and not counted:
they take at most a twentieth of another core.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.daemon import running
from benchmarks.gateway_cpu import processor_s
from benchmarks.latency import Sender
from benchmarks.measure import Result
from benchmarks.payloads import payloads
from tests.integration.daemon.support import STREAM, Process, page_address
from tests.support.browser import Browser, chromium

RATE = 5_000
SECONDS = 6
STEP_MS = 10
ROUNDS = 5
BAR = 0.95

RULES = """
rules:
  - id: warm
    sql: SELECT dev, avg(temp) AS mean FROM m GROUP BY dev, TUMBLINGWINDOW(ss, 1) HAVING avg(temp) > 1000
    actions: [{nop: {}}]
  - id: high
    sql: SELECT dev, temp FROM m WHERE temp > 99
    actions: [{nop: {}}]
"""


def page() -> Result:
    """What the open page leaves of a core for intake."""
    messages = payloads(20_000, 100)
    with (
        tempfile.TemporaryDirectory() as folder,
        running({"rules.yaml": STREAM + RULES}) as (process, broker),
        chromium(Path(folder)) as browser,
    ):
        sender = Sender(broker.port)
        address = page_address(process)
        _used(process, sender, messages)
        closed, opened = [], []
        for _ in range(ROUNDS):
            browser.open("about:blank")
            closed.append(_used(process, sender, messages))
            _open(browser, address)
            opened.append(_used(process, sender, messages))
        sender.close()
    without, beside = statistics.median(closed), statistics.median(opened)
    line = (
        f"page: the gateway takes {beside:.3f} of a core with it, {without:.3f} without, "
        f"at {RATE:,} messages/s"
    )
    return Result(
        "page",
        1 - (beside - without),
        "of the rate without",
        cost_ns=beside / RATE * 1e9,
        base_ns=without / RATE * 1e9,
        bar=BAR,
        lines=[line],
    )


def _open(browser: Browser, address: str) -> None:
    """The page with a rule that is looked at again and again."""
    browser.open(address)
    browser.wait_text("#rules", "warm")
    browser.click('#rules button[data-rule="warm"]')


def _used(process: Process, sender: Sender, messages: list[bytes]) -> float:
    """Seconds of processor time that the gateway takes a second."""
    count = RATE * STEP_MS // 1000
    began_s, before_s = time.monotonic(), processor_s(process.pid)
    for step in range(SECONDS * 1000 // STEP_MS):
        for number in range(count):
            sender.add(messages[(step * count + number) % len(messages)])
        sender.flush()
        time.sleep(max(0.0, began_s + (step + 1) * STEP_MS / 1000 - time.monotonic()))
    return (processor_s(process.pid) - before_s) / (time.monotonic() - began_s)


CASES = {"page": page}
