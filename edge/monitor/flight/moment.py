"""The last events of a rule as an inline test, which can be pasted into its file, and as a picture."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from edge.monitor.flight.observe import Observations

EVENTS_SHOWN = 40
EVENTS_DRAWN = 30


def as_test(seen: Observations) -> str:
    """A `tests:` entry with the last events, and the rows that the rule emitted for them."""
    import yaml

    events = list(seen.events)[-EVENTS_SHOWN:]
    start_ms = events[0][0] if events else seen.from_ms
    several = len(seen.streams) > 1
    steps = [_step(at_ms - start_ms, stream if several else None, row) for at_ms, stream, row in events]
    steps.append({"at": f"{max(0, seen.until_ms - start_ms)}ms"})
    test: dict[str, Any] = {
        "name": f"as it was at {start_ms}",
        "rule": seen.rule,
        "start": start_ms,
        "events": steps,
    }
    expected = list(_expected(seen, start_ms))
    if expected:
        test["expect"] = expected
    text = yaml.safe_dump(
        {"tests": [test]}, sort_keys=False, allow_unicode=True, default_flow_style=None, width=110
    )
    note = "# the last events; windows that began before them are empty in a test, so read what it expects\n"
    return note + text


def timeline(seen: Observations) -> str:
    """The last events and the windows as an SVG picture; empty where there is nothing to draw."""
    from sql.explain.timelines.recording import record
    from sql.explain.timelines.svg import render_svg

    if seen.plan is None or seen.catalog is None or not seen.events or seen.plan.acts is not None:
        return ""
    if seen.plan.context is not None or any(name not in seen.streams for name in seen.plan.streams):
        return ""
    return render_svg(record(seen.plan, seen.catalog, list(seen.events)[-EVENTS_DRAWN:]))


def _step(after_ms: int, stream: str | None, row: dict[str, Any]) -> dict[str, Any]:
    at: dict[str, Any] = {"at": f"{after_ms}ms"}
    if stream is not None:
        at["stream"] = stream
    return at | {"send": {name: value for name, value in row.items() if not name.startswith("$")}}


def _expected(seen: Observations, start_ms: int) -> Iterator[dict[str, Any]]:
    for at_ms, rows, removed in seen.results.fired:
        if at_ms < start_ms:
            continue
        found: dict[str, Any] = {"at": f"{at_ms - start_ms}ms"}
        if rows:
            found["rows"] = [_plain(row) for row in rows]
        if removed:
            found["removed"] = [_plain(row) for row in removed]
        yield found


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None and not name.startswith("$")}
