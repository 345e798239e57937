"""The answer to "why" as text for a terminal. The command imports this module and not the engine, which the
gateway's process needs only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from edge.base.instants import to_the_second
from edge.base.quantities import counted
from sql.explain.time_lengths import length


def lines(told: dict[str, Any]) -> Iterator[str]:
    """The answer as a person reads it."""
    over = length(max(0, told["until_ms"] - told["from_ms"]) // 1000 * 1000)
    fired = told["fired"]
    last = "never, as far as is known" if fired["last_ms"] is None else to_the_second(fired["last_ms"])
    yield f"rule {told['rule']}, the last {over}: {counted(fired['rows'], 'row')}; last fired: {last}"
    if told["began_ms"] is not None:
        yield f"  it was deployed at {to_the_second(told['began_ms'])}"
    yield ""
    for number, item in enumerate(told["findings"]):
        yield f"{'because' if number == 0 and item['code'] != 'fired' else '       '} {item['text']}"
    if not told["findings"]:
        yield "nothing was found that keeps it from firing"
    yield ""
    yield from _stages(told["stages"])
    yield from _waits(told["waits"])
    yield from _misses(told["conditions"])
    if told["cold_ms"] is not None:
        yield (
            f"conditions are shown from {to_the_second(told['cold_ms'])} on: "
            "the windows before could not be looked into"
        )


def _stages(stages: list[dict[str, Any]]) -> Iterator[str]:
    for stage in stages:
        held = f", {stage['held']} held" if stage["held"] else ""
        yield f"{stage['stage']:<11}{stage['count']:>9} {stage['unit']:<8} -> {stage['passed']}{held}"
        for why, count in sorted(stage["lost"].items(), key=lambda item: -item[1]):
            yield f"{'':<11}{-count:>9} {why}"


def _waits(waits: list[dict[str, Any]]) -> Iterator[str]:
    if waits:
        yield ""
        yield "searches that wait"
    for wait in waits:
        over = "" if wait["due_ms"] is None else f", until {to_the_second(wait['due_ms'])}"
        tags = "; ".join(f"{name}: {text}" for name, text in wait["tags"].items())
        oldest = f"since {to_the_second(wait['begun_ms'])}{over}{f' ({tags})' if tags else ''}"
        yield f"  {wait['count']} for {wait['what']}, {'' if wait['count'] == 1 else 'the oldest '}{oldest}"


def _misses(conditions: list[dict[str, Any]]) -> Iterator[str]:
    shown = [item for item in conditions if item["nearest"] is not None and item["nearest"]["values"]]
    if shown:
        yield ""
        yield "nearest misses"
    for item in shown:
        yield f"  {item['text']}: {item['nearest']['text']} at {to_the_second(item['nearest']['at_ms'])}"
