"""The answer to "why": plain data for programs and the page, and text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import structs

from edge.base.instants import to_the_second
from edge.monitor.flight.causes import counted, findings, near_miss
from edge.monitor.flight.facts import Facts
from edge.monitor.flight.observe import Seen
from edge.monitor.flight.stages import Stage, stages_of
from sql.explain.tally import Failed, Miss, swept
from sql.explain.timelines.timeline import value_text
from sql.explain.words import length

NAMES_SHOWN = 8


def answer(seen: Seen, facts: Facts) -> dict[str, Any]:
    """The findings as JSON values. Times are milliseconds since the epoch."""
    found = findings(seen, facts)
    last_fired = facts.last_fired_ms if seen.results.last_ms is None else seen.results.last_ms
    return {
        "rule": seen.rule,
        "sql": "" if seen.plan is None else seen.plan.text.strip(),
        "from_ms": seen.from_ms,
        "until_ms": seen.until_ms,
        "fired": {"rows": seen.results.rows, "outputs": seen.results.emissions, "last_ms": last_fired},
        "findings": [{"code": item.code, "text": item.text} for item in found],
        "stages": [_stage(stage) for stage in stages_of(seen)],
        "conditions": [
            _condition(tally.rows, failed) for tally in seen.tallies for failed in tally.conditions
        ],
        "streams": [
            {
                "stream": census.stream,
                "topic": census.topic,
                "messages": census.messages,
                "events": census.rows,
                "last_ms": census.last_ms,
                "topics": dict(census.topics.most_common(NAMES_SHOWN)),
                "columns": {name: dict(column.types) for name, column in census.columns.items()},
            }
            for census in seen.streams.values()
        ],
        "waits": [structs.asdict(wait) for wait in facts.waits],
        "began_ms": seen.began_ms,
        "cold_ms": seen.cold_ms,
    }


def _stage(stage: Stage) -> dict[str, Any]:
    return {
        "stage": stage.name,
        "unit": stage.unit,
        "count": stage.count,
        "passed": stage.passed,
        "held": stage.held,
        "lost": stage.lost,
    }


def _condition(rows: int, failed: Failed) -> dict[str, Any]:
    condition = failed.condition
    return {
        "clause": condition.clause,
        "text": condition.text,
        "looked_at": rows,
        "failed": failed.count,
        "null": failed.unknown,
        "sweep": _sweep(failed),
        "nearest": None if failed.nearest is None else _miss(failed.nearest),
        "last": None if failed.last is None else _miss(failed.last),
    }


def _sweep(failed: Failed) -> dict[str, Any] | None:
    """The values that a constant is compared with: they show the effect of another constant."""
    found = swept(failed.condition)
    if found is None:
        return None
    return {"operator": failed.condition.operator, "bound": found[1], "values": failed.sweep}


def _miss(miss: Miss) -> dict[str, Any]:
    plain = {
        name: value if isinstance(value, int | float | str | None) else str(value)
        for name, value in {**miss.values}.items()
    }
    keys = {name: value_text(value) for name, value in miss.keys.items()}
    return {"at_ms": miss.at_ms, "keys": keys, "values": plain, "short": miss.short, "text": near_miss(miss)}


# --- text ---------------------------------------------------------------------------------------------------


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
