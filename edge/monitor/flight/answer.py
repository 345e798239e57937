"""The answer to "why" as plain data, for programs, the page and `edge.monitor.flight.text`."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from edge.monitor.flight.causes import findings, near_miss
from edge.monitor.flight.facts import Facts
from edge.monitor.flight.observe import Observations
from edge.monitor.flight.stages import Stage, stages_of
from sql.explain.tally import Failed, Miss, swept
from sql.explain.timelines.timeline import value_text

NAMES_SHOWN = 8


def answer(seen: Observations, facts: Facts) -> dict[str, Any]:
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
