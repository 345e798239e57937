"""Makes a finding smaller, as long as it stays one of its kind."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from sql import SqlError
from tests.conformance.mutation.judge import Finding, Refused, judged

Data = dict[str, Any]


def smaller(data: Data, finding: Finding, seconds: float = 10.0) -> Data:
    """With fewer steps, statements and columns of events, found in a bounded time."""
    end = time.monotonic() + seconds
    shrunk = True
    while shrunk:
        shrunk = False
        for other in _smaller_ones(data):
            if time.monotonic() > end:
                return data
            if _is_of(other, finding):
                data, shrunk = other, True
                break
    return data


def _is_of(data: Data, finding: Finding) -> bool:
    try:
        found = judged(data, 2.0)
    except (Refused, SqlError):
        return False
    return found is not None and found.kind == finding.kind


def _smaller_ones(data: Data) -> Iterator[Data]:
    for name in ("steps", "epl"):
        items = data.get(name, [])
        size = len(items) // 2
        while size:
            for start in range(0, len(items), size):
                yield {**data, name: items[:start] + items[start + size :]}
            size //= 2
    for place, step in enumerate(data["steps"]):
        for column in step.get("event", ()):
            event = {name: value for name, value in step["event"].items() if name != column}
            yield {
                **data,
                "steps": [*data["steps"][:place], {**step, "event": event}, *data["steps"][place + 1 :]],
            }
