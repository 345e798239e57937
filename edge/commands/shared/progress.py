"""The progress of a command: one line on a terminal, nothing elsewhere."""

from __future__ import annotations

import sys

from edge.clock import Clock

WIDTH = 30
EVERY_MS = 200


class Progress:
    """A bar on standard error, redrawn in place a few times a second; `total` None:
    only the count is shown."""

    def __init__(self, total: int | None, clock: Clock) -> None:
        self.total = total
        self.shown = sys.stderr.isatty()
        self.clock = clock
        self.began_ms = self.drawn_ms = clock.monotonic_ms()
        self.count = 0

    def add(self, count: int, done: int) -> None:
        """Count further events; `done` of the total is processed."""
        self.count += count
        if not self.shown:
            return
        now_ms = self.clock.monotonic_ms()
        if now_ms - self.drawn_ms >= EVERY_MS:
            self.drawn_ms = now_ms
            rate = 1000 * self.count / (now_ms - self.began_ms)
            sys.stderr.write(f"\r{self._bar(done)}{self.count:,} events, {rate:,.0f}/s\x1b[K")
            sys.stderr.flush()

    def _bar(self, done: int) -> str:
        if not self.total:
            return ""
        share = min(1.0, done / self.total)
        filled = int(share * WIDTH)
        return f"[{'#' * filled}{'.' * (WIDTH - filled)}] {share:4.0%}  "

    def close(self) -> None:
        """Remove the line."""
        if self.shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
