"""`penstock top`: the activity of the rules of a running gateway, from its `/status`.

It goes on while the gateway is restarted. Keys: q quits; e, r, m, x and n sort by events, rows, memory,
errors, name.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import select
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from edge.base.errors import UsageError
from edge.commands.shared import gateway_arguments
from edge.commands.shared.argument_types import duration
from edge.monitor.client import GatewayClient
from edge.monitor.top import SORTS, render
from rules.durations import format_duration

CLEAR = "\x1b[H\x1b[2J"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    gateway_arguments.add_gateway(parser)
    parser.add_argument(
        "--interval", type=duration, default=2_000, metavar="TIME", help="between two looks (default 2s)"
    )
    parser.add_argument("--once", action="store_true", help="print one table and exit")
    parser.add_argument(
        "--sort", choices=sorted(SORTS.values()), default="EVENTS/S", help="column to sort rules by"
    )


def run(arguments: argparse.Namespace) -> int:
    if not arguments.interval:
        raise UsageError("--interval must be above 0")
    client = gateway_arguments.client(arguments)
    before = _status(client)
    with _single_keys() as wait:
        if arguments.once:
            wait(arguments.interval / 1_000)
            _show(before, _status(client), arguments.sort)
            return 0
        return _watch(arguments, client, before, wait)


def _watch(
    arguments: argparse.Namespace, client: GatewayClient, before: dict[str, Any], wait: Callable[[float], str]
) -> int:
    """Show until q is pressed. A gateway that does not answer is queried again after the interval."""
    sort = arguments.sort
    while True:
        key = wait(arguments.interval / 1_000)
        if "q" in key:
            return 0
        sort = SORTS.get(key[:1], sort)
        try:
            now = _status(client)
        except UsageError as error:
            print(
                f"{CLEAR}{error}\nasking again every {format_duration(arguments.interval)}; q quits",
                flush=True,
            )
            continue
        if now["monotonic_ms"] < before["monotonic_ms"] or now["up_s"] < before["up_s"]:
            before = now  # another process: its counters begin anew
        print(CLEAR, end="")
        _show(before, now, sort)
        before = now


def _show(before: dict[str, Any], now: dict[str, Any], sort: str) -> None:
    size = shutil.get_terminal_size((80, 24))
    print("\n".join(render(before, now, size.columns, sort)), flush=True)


def _status(client: GatewayClient) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(client.page("/status"))
    return found


@contextlib.contextmanager
def _single_keys() -> Iterator[Callable[[float], str]]:
    """Gives `wait(seconds)`: the key that was pressed meanwhile, or an empty text.

    Where standard input is no terminal it only waits. The terminal is as before when the block ends.
    """
    if not sys.stdin.isatty():
        yield _no_key
        return
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)

    def wait(seconds: float) -> str:
        ready, _, _ = select.select([descriptor], [], [], seconds)
        return os.read(descriptor, 16).decode("utf-8", "replace") if ready else ""

    try:
        yield wait
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _no_key(seconds: float) -> str:
    threading.Event().wait(seconds)
    return ""
