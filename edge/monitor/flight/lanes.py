"""The picture of a live rule as plain data: for each key its last events and condition results."""

from __future__ import annotations

from typing import Any

from edge.monitor.flight.observe import Observations
from sql.explain.tally import Look, Tally
from sql.explain.timelines.timeline import value_text

LANES_TOLD = 24
"""The most lanes in one answer: those of the keys that were evaluated last."""


def lanes(seen: Observations) -> dict[str, Any]:
    """Events are marks with a time; looks have the window they are at.
    `more`: how many keys have no lane here."""
    events = [tally for tally in seen.tallies if tally.probe.stage == "events"]
    looks = [tally for tally in seen.tallies if tally.probe.stage != "events"]
    names = {name for tally in seen.tallies for name in tally.lanes.looks}
    newest = sorted(names, key=lambda name: _last_ms(seen.tallies, name), reverse=True)[:LANES_TOLD]
    told = [
        {"key": ", ".join(name), "events": _marks(events, name), "looks": _marks(looks, name)}
        for name in sorted(newest)
    ]
    return {"lanes": told, "more": len(names) - len(told)}


def _last_ms(tallies: list[Tally], name: tuple[Any, ...]) -> int:
    return max(tally.lanes.looks[name][-1].at_ms for tally in tallies if name in tally.lanes.looks)


def _marks(tallies: list[Tally], name: tuple[Any, ...]) -> list[dict[str, Any]]:
    """The evaluations of one key by several probes, in the order of time."""
    found = [
        {"at_ms": look.at_ms, "from_ms": look.from_ms, "holds": not look.failed, "text": _text(tally, look)}
        for tally in tallies
        for look in tally.lanes.looks.get(name, ())
    ]
    return sorted(found, key=lambda mark: mark["at_ms"])


def _text(tally: Tally, look: Look) -> str:
    """The values against the thresholds."""
    values = ", ".join(f"{text} {value_text(value)}" for text, value in look.values.items())
    failed = ", ".join(tally.conditions[number].condition.text for number in look.failed)
    return "; ".join(part for part in (values, f"failed: {failed}" if failed else "") if part)
