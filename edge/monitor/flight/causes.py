"""From observations to findings: the stage where the events end, and the cause. Pure.

Findings stand in the order of the way; the first is the cause. What only costs a part
of the events is a note.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from edge.base.quantities import counted
from edge.monitor.flight.census import Census
from edge.monitor.flight.facts import Facts
from edge.monitor.flight.observe import Observations
from edge.monitor.flight.stages import Stage, stages_of
from sql.errors import did_you_mean
from sql.explain.tally import Failed, Miss
from sql.explain.time_lengths import about, length
from sql.explain.timelines.timeline import value_text
from sql.plan.bound import Read, Slot
from sql.plan.logical import Plan

CLOCK_OFF_MS = 3_600_000
"""Time stamps further from the arrival than this are said to be of another clock."""


class Finding(NamedTuple):
    """One thing that keeps results from coming.

    code     a word for programs: not-running, broker, refused, silent, rejected, key, column, type, clock,
             late, filter, no-pair, context, waiting, having, limit, sink, fired
    is_whole  nothing gets past it
    """

    code: str
    text: str
    is_whole: bool = True


def findings(seen: Observations, facts: Facts) -> list[Finding]:
    """The findings, the cause first."""
    found = [
        *_of_the_gateway(seen, facts),
        *_of_streams(seen),
        *_of_key(seen),
        *_of_events(seen, has_searches=bool(facts.waits)),
        *_of_searches(seen, facts),
        *_of_results(seen, facts),
    ]
    if seen.results.rows:
        found.insert(0, Finding("fired", _fired(seen), is_whole=False))
    whole = [item for item in found if item.is_whole]
    return whole + [item for item in found if not item.is_whole]


def _fired(seen: Observations) -> str:
    results = seen.results
    ago_ms = max(0, seen.until_ms - (results.last_ms or seen.until_ms))
    rows, outputs = counted(results.rows, "row"), counted(results.emissions, "output")
    of_all = "with all keys " if seen.is_of_a_key else ""
    return f"{of_all}it fired: {rows} in {outputs}, the last one {about(ago_ms)} ago"


# --- the gateway --------------------------------------------------------------------------------------------


def _of_the_gateway(seen: Observations, facts: Facts) -> Iterator[Finding]:
    if facts.not_running:
        yield Finding("not-running", "; ".join((facts.not_running, *facts.problems[:1])))
    topics = [census.topic for census in seen.streams.values() if census.topic]
    if facts.broker_problem and topics:
        yield Finding("broker", f"there is no connection to the broker: {facts.broker_problem}")
    for topic in topics:
        if topic in facts.refused:
            yield Finding("refused", f"the broker refuses the topic '{topic}': {facts.refused[topic]}")
    if not facts.is_clock_sane:
        yield Finding("clock", "the gateway's clock is not set: it shows a year before 2025", is_whole=False)


# --- streams ------------------------------------------------------------------------------------------------


def _of_streams(seen: Observations) -> Iterator[Finding]:
    silent = [census for census in seen.streams.values() if not (census.messages or census.rows)]
    is_join = seen.plan is not None and len(seen.plan.sources) > 1
    for census in silent:
        over = length(max(1000, seen.until_ms - seen.from_ms) // 1000 * 1000)
        where = f" on topic '{census.topic}'" if census.topic else ""
        side = ", one side of the join," if is_join else ""
        yield Finding(
            "silent",
            f"nothing came to stream '{census.stream}'{side}{where} in {over}",
            is_whole=_needs_all(seen) or len(silent) == len(seen.streams),
        )
    for census in seen.streams.values():
        yield from _rejected(census)
        yield from _clock(census)
        yield from _columns(seen, census)


def _needs_all(seen: Observations) -> bool:
    """True if one silent stream is enough to give no rows."""
    return seen.plan is not None and any(join.kind in ("inner", "cross") for join in seen.plan.joins)


def _rejected(census: Census) -> Iterator[Finding]:
    refused = census.bad.total()
    if refused:
        reasons = "; ".join(reason for reason, _ in census.bad.most_common(3))
        text = f"{refused} of {census.messages} messages of stream '{census.stream}' were refused: {reasons}"
        yield Finding("rejected", text, is_whole=refused == census.messages)


def _clock(census: Census) -> Iterator[Finding]:
    if census.bad_times:
        text = (
            f"{census.bad_times} of {census.rows} events of stream '{census.stream}' have no time stamp in "
        )
        yield Finding(
            "clock", f"{text}'{census.timestamp}' that is a whole number", census.bad_times == census.rows
        )
    if not census.ahead_ms:
        return
    least, most = census.ahead_ms
    if most < -CLOCK_OFF_MS:
        yield Finding(
            "clock",
            f"{_stamps(census)} {about(-most)} behind the gateway's clock{_unit_hint(census)}",
        )
    elif least > CLOCK_OFF_MS:
        yield Finding(
            "clock",
            f"{_stamps(census)} {about(least)} ahead of the gateway's clock{_unit_hint(census)}",
        )


def _stamps(census: Census) -> str:
    return f"the time stamps of stream '{census.stream}' (column '{census.timestamp}') are"


def _unit_hint(census: Census) -> str:
    """Seconds read as milliseconds show January 1970."""
    column = census.columns.get(census.timestamp or "")
    value = None if column is None else column.example
    return (
        "; they look like seconds, milliseconds are expected"
        if isinstance(value, int) and 1e9 < value < 4e9
        else ""
    )


def _columns(seen: Observations, census: Census) -> Iterator[Finding]:
    """Columns the rule reads that no payload had, and columns whose values are no numbers where one is
    compared."""
    if seen.plan is None or not census.rows:
        return
    for name in sorted(seen.plan.columns(census.stream) or ()):
        if name in census.columns or name.startswith("$"):
            continue
        hint = did_you_mean(name, census.columns) or f"they have {', '.join(sorted(census.columns)[:8])}"
        text = f"column '{name}' was in none of {census.rows} events of stream '{census.stream}'; {hint}"
        yield Finding(
            "column", text, is_whole=not seen.results.rows and name in _columns_of_conditions(seen.plan)
        )


def _columns_of_conditions(plan: Plan) -> set[str]:
    """The columns that decide whether there is a row: those in FILTER, WHERE, HAVING and ON."""
    conditions = [plan.where, plan.having, *(join.on for join in plan.joins)]
    parts = [part for item in conditions if item is not None for part in item.walk()]
    parts += [part for source in plan.sources if source.filter is not None for part in source.filter.walk()]
    for slot in [part for part in parts if isinstance(part, Slot) and part.kind == "aggregate"]:
        parts += [part for argument in plan.aggregates[slot.key].args for part in argument.walk()]
    return {part.column for part in parts if isinstance(part, Read) and part.column is not None}


def _of_key(seen: Observations) -> Iterator[Finding]:
    """A key that no event and no row had is mostly misspelt."""
    keyed = [tally for tally in seen.tallies if tally.probe.keys]
    elsewhere = sum(tally.elsewhere for tally in keyed)
    if elsewhere and not any(tally.rows for tally in keyed):
        others = dict.fromkeys(key for tally in keyed for key in tally.other_keys)
        hint = did_you_mean(seen.key or "", others) or f"there are {', '.join(sorted(others)[:8])}"
        yield Finding("key", f"none of {elsewhere} events and rows has the key '{seen.key}'; {hint}")


# --- conditions ---------------------------------------------------------------------------------------------


def _of_events(seen: Observations, *, has_searches: bool) -> Iterator[Finding]:
    """The first stage that nothing gets past; of the others, what they cost. `has_searches`: searches of a
    pattern are said to wait elsewhere."""
    stages = stages_of(seen)
    for stage in stages:
        if stage.name in ("filter", "joined", "having"):
            yield from _of_conditions(seen, stage)
        elif stage.name == "context":
            yield from _of_context(stage)
        elif stage.name == "event time":
            yield from _of_event_time(stage)
        elif stage.name == "windows" and stage.is_end:
            yield Finding("waiting" if not _is_join(seen) else "no-pair", _open_windows(seen, stage))
        elif stage.name == "pattern" and stage.is_end and not has_searches:
            yield Finding(
                "waiting", f"no search of the pattern waits: none of {stage.count} events completed one"
            )
        elif stage.name == "output":
            yield from _of_limit(seen, stage)
        if stage.is_end:
            return


def _of_context(stage: Stage) -> Iterator[Finding]:
    for what, count in stage.lost.items():
        yield Finding("context", f"{count} of {stage.count} events came while {what}", stage.is_end)


def _is_join(seen: Observations) -> bool:
    return seen.plan is not None and bool(seen.plan.joins)


def _open_windows(seen: Observations, stage: Stage) -> str:
    if _is_join(seen):
        sides = ", ".join(f"{census.rows} of '{name}'" for name, census in seen.streams.items())
        return f"no two events met the join's condition: {sides}"
    due = seen.next_deadline_ms
    when = "" if due is None else f", the next one closes in {length(max(0, due - seen.until_ms))}"
    return f"{stage.count} events are in windows that have not closed yet{when}"


def _of_event_time(stage: Stage) -> Iterator[Finding]:
    if late := stage.lost.get("late", 0):
        yield Finding(
            "late", f"{late} of {stage.count} events came too late: their windows were closed", stage.is_end
        )
    if future := stage.lost.get("too far in the future", 0):
        yield Finding(
            "clock", f"{future} of {stage.count} events had time stamps too far in the future", stage.is_end
        )
    if stage.held and stage.is_end:
        yield Finding(
            "waiting", f"{stage.held} events wait for the watermark: time goes on with newer events"
        )


NAMES = {"filter": "filter", "joined": "filter", "having": "having"}


def _of_conditions(seen: Observations, stage: Stage) -> Iterator[Finding]:
    wanted = {"filter": "events", "joined": "pairs", "having": "samples"}[stage.name]
    for tally in (tally for tally in seen.tallies if tally.probe.stage == wanted):
        failed = sorted((item for item in tally.conditions if item.count), key=lambda item: -item.count)
        for item in failed:
            yield from _of_condition(seen, stage, item, tally.rows)
        for message, count in tally.errors.most_common(2):
            text = f"{counted(count, stage.unit.removesuffix('s'))} could not be evaluated: {message}"
            yield Finding(
                "type", text, is_whole=stage.is_end and count == tally.errors.total() and not failed
            )


def _of_condition(seen: Observations, stage: Stage, item: Failed, rows: int) -> Iterator[Finding]:
    condition = item.condition
    how = f"{condition.clause} {condition.text} failed for {item.count} of {rows} {stage.unit}"
    if item.unknown:
        how += f" ({item.unknown} times it was NULL)"
    code, hint = NAMES[stage.name], ""
    if item.unknown == item.count and item.nearest is not None:
        empty = [text for text, value in item.nearest.values.items() if value is None]
        hint = f": {', '.join(empty)} is NULL" if empty else ""
    elif texts := _texts_for_numbers(item):
        code, hint = "type", f": {texts}"
    elif item.nearest is not None and item.nearest.values:
        hint = f"; nearest {near_miss(item.nearest)}"
    yield Finding(code, how + hint, is_whole=stage.is_end and item.count == rows)


def _texts_for_numbers(item: Failed) -> str:
    """Texts that are compared with a number."""
    nearest, values = item.nearest, item.condition.values
    if nearest is None or not any(isinstance(value, int | float) for value in values):
        return ""
    texts = {text: value for text, value in nearest.values.items() if isinstance(value, str)}
    return ", ".join(f"{text} is the text '{value}', not a number" for text, value in texts.items())


def near_miss(miss: Miss) -> str:
    """A miss with its values.

    >>> near_miss(Miss(0, {"dev": "a"}, {"avg(temp)": 89.97}, 0.03, 0))
    'avg(temp) 89.97, 0.03 short (dev=a)'
    """
    values = ", ".join(f"{text} {value_text(value)}" for text, value in miss.values.items())
    short = (
        "" if miss.short is None else f", {miss.short:g} short" if miss.short else ", exactly at the bound"
    )
    keys = ", ".join(f"{text}={value_text(value)}" for text, value in miss.keys.items())
    return f"{values}{short}" + (f" ({keys})" if keys else "")


def _of_limit(seen: Observations, stage: Stage) -> Iterator[Finding]:
    for what, count in stage.lost.items():
        text = f"{count} of {stage.count} rows fulfilled all conditions and were held back: {what}"
        if seen.plan is not None and seen.plan.acts is not None:
            text = f"{count} of {stage.count} events did nothing: {what}"
        yield Finding("limit", text, is_whole=stage.is_end)
    of_conditions = {message for tally in seen.tallies for message in tally.errors}
    others = Counter({text: n for text, n in seen.results.errors.items() if text not in of_conditions})
    for message, count in others.most_common(2):
        yield Finding("type", f"{counted(count, 'event')} failed: {message}", is_whole=stage.is_end)


def _of_searches(seen: Observations, facts: Facts) -> Iterator[Finding]:
    """Findings about the live searches of a pattern: the events they wait for."""
    for wait in facts.waits:
        ago = about(max(0, facts.now_ms - wait.begun_ms))
        tags = "; ".join(f"{name}: {text}" for name, text in wait.tags.items())
        oldest = f"{'' if wait.count == 1 else 'the oldest '}since {ago}{f' ({tags})' if tags else ''}"
        text = (
            f"{wait.count} {'search waits' if wait.count == 1 else 'searches wait'} for {wait.what}, {oldest}"
        )
        yield Finding("waiting", text, is_whole=not seen.results.rows)


# --- sinks --------------------------------------------------------------------------------------------------


def _of_results(seen: Observations, facts: Facts) -> Iterator[Finding]:
    for item in facts.deliveries:
        problem: Any = item.last_error and item.state != "ok"
        if problem or item.rejected or item.queued > 100:
            text = (
                f"action {item.sink}: {item.state}, {item.sent} sent, {item.queued} queued, "
                f"{item.rejected} rejected"
            )
            yield Finding(
                "sink", f"{text}{': ' + item.last_error if item.last_error else ''}", is_whole=bool(problem)
            )
