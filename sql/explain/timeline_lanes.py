"""The last results of the conditions of a rule, one lane for each key: the data of a live rule's picture."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

LANES_MAX = 200
"""The number of keys that have a lane; looks at further ones are counted."""

LOOKS_MAX = 60
"""The number of looks that a lane keeps."""


class Look(NamedTuple):
    """One row of a probe.

    from_ms  the start of the window; None for a look at an event
    failed   the conditions that did not hold, by number
    values   the operands of the conditions without constants: the text of each, and its value
    """

    at_ms: int
    from_ms: int | None
    failed: tuple[int, ...]
    values: dict[str, Any]


@dataclass(slots=True)
class TimelineLanes:
    """Looks by key. `others`: looks at keys that have no lane."""

    looks: dict[tuple[Any, ...], deque[Look]] = field(default_factory=dict)
    others: int = 0

    def add(self, keys: Mapping[str, Any], look: Look) -> None:
        """Keep a look in the lane of its key."""
        name = tuple(map(str, keys.values()))
        lane = self.looks.get(name)
        if lane is None:
            if len(self.looks) >= LANES_MAX:
                self.others += 1
                return
            lane = self.looks[name] = deque(maxlen=LOOKS_MAX)
        lane.append(look)
