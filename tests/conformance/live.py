"""What a live eKuiper answered (`kuiper_live_*.jsonl`), and whether ours is the same.

Two kinds of lines: an expression with one event and its value, and a rule with events and the messages that
came out. Where ours differs on purpose the scenario is skipped, with the row of docs/deviations.md that says
so.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sinks.formats.json_text import json_bytes
from sql import Catalog, Emission, Engine, Plan, RuleOptions, plan_rule
from sql.errors import SqlError
from tests.conformance.compare import Row, lines_of, same_rows
from tests.conformance.deviations import deviation
from tests.conformance.restart import Restartable
from tests.conformance.scenario import Difference, Drive, Scenario, Skip
from tests.support.streams import catalog_of

STREAM = 'CREATE STREAM s () WITH (DATASOURCE="s", FORMAT="json")'
START_MS = 1541152486000
QUIET_MS = 60_000
"""How long the clock runs on after the last event, so that windows close."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one side made of a rule: it refused the text, or these messages came out; an
    error is a row of its own."""

    refused: bool = False
    messages: tuple[list[Row], ...] = ()


def run_live(scenario: Scenario, drive: Drive) -> Engine | None:
    """Run the text as eKuiper did; None where ours refuses it as well. Skip where nothing was recorded."""
    data = scenario.data
    theirs = recorded(data)
    engine: Engine | None = None
    try:
        engine, emissions = _run(data, drive)
        ours = Answer(messages=tuple(_message(item) for item in emissions if item.kind != "late"))
        refusal = ""
    except SqlError as error:
        ours, refusal = Answer(refused=True), str(error)
    if same(ours, theirs):
        return engine
    reason = deviation(scenario.text, _outcome(theirs), _outcome(ours))
    if reason is not None:
        raise Skip(reason)
    lines = [
        "    eKuiper:",
        *lines_of(_outcome(theirs)),
        "    ours:",
        *lines_of(_outcome(ours)),
        f"    {refusal}",
    ]
    raise Difference("\n".join(lines))


def recorded(data: dict[str, Any]) -> Answer:
    """eKuiper's side of a scenario, in either form of the file."""
    answer = data["ekuiper"]
    if "expr" not in data:
        refused = answer == "refused" or (isinstance(answer, dict) and answer.get("refused"))
        return Answer(refused=bool(refused), messages=() if refused else tuple(answer))
    if isinstance(answer, list) and len(answer) == 1 and answer[0] == "NOTHING":
        raise Skip("eKuiper's answer was not recorded")
    if isinstance(answer, list) and len(answer) == 1 and answer[0] == "REFUSED":
        return Answer(refused=True)
    if isinstance(answer, list) and len(answer) == 2 and answer[0] == "ERROR":
        return Answer(messages=([{"error": answer[1]}],))
    return Answer(messages=([{"r": answer, "one": data["event"].get("i")}],))


def same(ours: Answer, theirs: Answer) -> bool:
    """Whether both did the same; texts of errors are each side's own."""
    if ours.refused or theirs.refused:
        return ours.refused and theirs.refused
    if len(ours.messages) != len(theirs.messages):
        return False
    pairs = zip(ours.messages, theirs.messages, strict=True)
    return all((_is_error(a) and _is_error(b)) or same_rows(a, b, ordered=True) for a, b in pairs)


def _is_error(rows: list[Row]) -> bool:
    return len(rows) == 1 and set(rows[0]) == {"error"}


def _outcome(answer: Answer) -> list[Any]:
    return ["refused"] if answer.refused else list(answer.messages)


def _run(data: dict[str, Any], drive: Drive) -> tuple[Engine, list[Emission]]:
    sql = data.get("sql") or f"SELECT {data['expr']} AS r, i AS one FROM s"
    events = data["data"] if "data" in data else [data["event"]]
    times = data.get("at") or [START_MS] * len(events)
    event_time = bool(data.get("eventTime"))

    def prepare() -> tuple[Catalog, Plan]:
        catalog = catalog_of(data.get("ddl") or STREAM)
        return catalog, plan_rule(sql, catalog, RuleOptions(event_time=event_time, rule_id="rule"))

    machine = Restartable(prepare, START_MS, drive)
    out: list[Emission] = []
    for at_ms, event in zip(times, events, strict=True):
        machine.restart(at_ms)
        out += machine.engine.advance(at_ms)
        out += machine.engine.push("s", [{**event, "$meta": {"topic": "mock"}}], at_ms)
    if not event_time:
        out += machine.engine.advance(max(times, default=START_MS) + QUIET_MS)
    return machine.engine, out


def _message(emission: Emission) -> list[Row]:
    """An emission as a sink would send it: through JSON, without NULL columns. Late events go to another."""
    if emission.kind != "rows":
        return [{"error": emission.error}]
    rows: list[Row] = json.loads(json_bytes(emission.inserted))
    return [{name: value for name, value in row.items() if value is not None} for row in rows]
