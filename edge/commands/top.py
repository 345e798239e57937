"""`penstock top`: what the rules of a running gateway do, from its `/status`."""

from __future__ import annotations

import argparse
import json
import threading
from pathlib import Path
from typing import Any

from edge.base.errors import UsageError
from edge.monitor import client

COLUMNS = ("RULE", "STATE", "EVENTS/S", "ROWS/S", "EVENTS", "ROWS", "LATE", "ERRORS", "GROUPS", "MEMORY", "QUEUED")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    client.add_address_argument(parser)
    parser.add_argument(
        "--interval", type=float, default=2.0, metavar="S", help="seconds between two looks (default 2)"
    )
    parser.add_argument("--once", action="store_true", help="print one table and exit")


def run(arguments: argparse.Namespace) -> int:
    if arguments.interval <= 0:
        raise UsageError("--interval must be above 0")
    before = _status(arguments.address, arguments.data)
    while True:
        threading.Event().wait(arguments.interval)
        now = _status(arguments.address, arguments.data)
        if not arguments.once:
            print("\x1b[H\x1b[2J", end="")
        print("\n".join(render(before, now)), flush=True)
        if arguments.once:
            return 0
        before = now


def _status(address: str, data: Path) -> dict[str, Any]:
    status, text = client.get(address, "/status", data)
    if status != 200:
        raise UsageError(f"{address} answered {status}: {text.strip()}; set --data, or PENSTOCK__HTTP__TOKEN")
    found: dict[str, Any] = json.loads(text)
    return found


def render(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """The table of two looks at `/status`, the busiest rule first."""
    seconds = max(0.001, (now["monotonic_ms"] - before["monotonic_ms"]) / 1000)
    rows = [_row(name, rule, before["rules"].get(name), seconds) for name, rule in now["rules"].items()]
    rows.sort(key=lambda row: (-float(row[2]), row[0]))
    table = [COLUMNS, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(COLUMNS))]
    head = (
        f"gateway {now['gateway']}  up {now['up_s']} s  resident {now['resident_bytes'] // 1_000_000} MB  "
        f"unacknowledged {now['intake']['unacknowledged']}"
    )
    left = 2
    lines = [
        "  ".join(
            cell.ljust(width) if position < left else cell.rjust(width)
            for position, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in table
    ]
    return [head, *lines, *(problem for file in now["files"] for problem in file["problems"])]


def _row(name: str, rule: dict[str, Any], before: dict[str, Any] | None, seconds: float) -> tuple[str, ...]:
    counters = rule["counters"]
    earlier = (before or rule)["counters"]

    def rate(counter: str) -> str:
        return f"{max(0, counters.get(counter, 0) - earlier.get(counter, 0)) / seconds:.1f}"

    return (
        name, rule["state"], rate("events_in"), rate("rows_out"),
        *(str(counters.get(key, 0)) for key in ("events_in", "rows_out", "late", "errors", "groups")),
        f"{rule['memory_bytes'] / 1000:.0f} kB", str(sum(action["queued"] for action in rule["actions"])),
    )  # fmt: skip
