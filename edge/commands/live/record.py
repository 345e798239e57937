"""`penstock record -o FILE.jsonl`: the events of the streams of a running gateway, for `penstock replay`.

    penstock record --for 1h -o morning.jsonl            all streams
    penstock record m k --for 10m -o two.jsonl

Each line has the instant of arrival, the stream, the topic and the event.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO
from urllib.parse import urlencode

from edge.clock import Clock, SystemClock
from edge.commands.shared import gateway_arguments
from edge.commands.shared.argument_types import duration


def add_arguments(parser: argparse.ArgumentParser) -> None:
    gateway_arguments.add_gateway(parser)
    parser.add_argument(
        "streams", nargs="*", metavar="STREAM", help="streams to record; default: all of them"
    )
    parser.add_argument(
        "--for", dest="for_ms", type=duration, metavar="TIME", help="how long; default: until Ctrl-C"
    )
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE.jsonl", help="file to write"
    )


def run(arguments: argparse.Namespace) -> int:
    clock = SystemClock()
    path = f"/tap?{urlencode({'streams': ','.join(arguments.streams)})}"
    with (
        gateway_arguments.client(arguments).follow(path) as lines,
        arguments.output.open("w", encoding="utf-8") as file,
    ):
        until_ms = None if arguments.for_ms is None else clock.monotonic_ms() + arguments.for_ms
        return _summary(*_write(_until(lines, clock, until_ms), file))


def _until(lines: Iterator[bytes], clock: Clock, until_ms: int | None) -> Iterator[bytes]:
    """The lines until an instant; the gateway sends an empty one at least every second."""
    for line in lines:
        if until_ms is not None and clock.monotonic_ms() >= until_ms:
            return
        yield line


def _write(lines: Iterator[bytes], file: TextIO) -> tuple[int, int]:
    """The number of events written, and of events lost because this process was too slow."""
    events = dropped = 0
    try:
        for line in lines:
            found = json.loads(line) if line.strip() else {}
            dropped += found.get("dropped", 0)
            if "event" in found:
                file.write(line.decode())
                events += 1
    except KeyboardInterrupt:
        pass
    return events, dropped


def _summary(events: int, dropped: int) -> int:
    """Print the numbers of events; the exit status."""
    lost = f"; {dropped} were lost, for this process was too slow" if dropped else ""
    print(f"{events} events recorded{lost}", file=sys.stderr)
    return 1 if dropped else 0
