"""The waiting time before another attempt."""

from __future__ import annotations

import random

from sql.record import Record


class Backoff(Record):
    """Exponential, with a cap, and with jitter so that a thousand gateways do not reconnect in the same
    instant.

    >>> Backoff(1000, 8000).wait_ms(10, random.Random(1)) <= 8000
    True
    """

    initial_ms: int
    max_ms: int

    def wait_ms(self, failures: int, rng: random.Random) -> int:
        """Milliseconds after the `failures`-th failure in a row (from 1): between
        half and all of the step."""
        step_ms = min(self.max_ms, self.initial_ms << min(failures - 1, 30))
        return max(1, round(step_ms * (0.5 + rng.random() / 2)))
