"""Runs a scenario in one way and keeps what it gives, step by step, whatever the file expects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sql import Catalog, Emission, Engine, Plan, RuleOptions, SqlError, plan_rule
from sql.emission import apart
from sql.errors import DataError
from tests.conformance.compare import Row, decoded
from tests.conformance.epl import LISTENED, Session
from tests.conformance.lots import STREAM
from tests.conformance.restart import Restartable
from tests.conformance.run import options_of
from tests.conformance.scenario import Drive
from tests.conformance.steps import Step
from tests.support.streams import define


class Seen(NamedTuple):
    """One emission."""

    statement: str
    at_ms: int
    kind: str
    inserted: list[Row]
    removed: list[Row]
    error: str | None = None


class Happened(NamedTuple):
    """What one step gave: emissions, and the rows that it answered."""

    emissions: list[Seen]
    rows: list[Row]


def uniform(data: dict[str, Any]) -> dict[str, Any]:
    """A scenario as statements (`epl`) or as one rule (`sql`), each with steps, without what is expected."""
    if "query" in data:
        data = {"ddl": STREAM, "sql": data["query"], "options": {}, "steps": list(_steps_of_lots(data))}
    names = ("epl", "config") if "epl" in data else ("ddl", "sql", "options")
    steps = [{name: step[name] for name in step if name not in NOT_DONE} for step in data["steps"]]
    return {**{name: data[name] for name in names if name in data}, "steps": steps}


NOT_DONE = ("expect", "content", "rows", "error")
"""What a step says of its results."""


def _steps_of_lots(data: dict[str, Any]) -> Iterator[Step]:
    yield {"advance": 0}
    for item in data["items"]:
        yield {"advance": item["a"]}
        yield {"send": "E", "event": {name: value for name, value in item.items() if name != "a"}}
    yield {"advance": data["end"]}


def drive_through(data: dict[str, Any], drive: Drive, parts: Sequence[Sequence[int]]) -> list[Happened]:
    """What each part of the steps gives: consecutive sends to one stream in one push."""
    machine = Statements(data, drive) if "epl" in data else OneRule(data, drive)
    out = []
    for part in parts:
        steps = [data["steps"][index] for index in part]
        step = {**steps[0], "events": [decoded(step["event"]) for step in steps if "send" in step]}
        out.append(machine.perform(step))
    return out


def parts_of(steps: Sequence[Step], *, together: bool) -> list[list[int]]:
    """The numbers of the steps that are done at once."""
    parts: list[list[int]] = []
    for number, step in enumerate(steps):
        if together and number and "send" in step and steps[number - 1].get("send") == step["send"]:
            parts[-1].append(number)
        else:
            parts.append([number])
    return parts


def _raise(rule: str, error: Exception) -> None:
    """An exception that no rule should raise ends the run."""
    raise Defect(rule, error) from error


class Defect(Exception):
    """A rule raised what none should."""


def _seen(emissions: Sequence[Emission]) -> list[Seen]:
    return [
        Seen(each.rule, each.at_ms, each.kind, each.inserted, list(each.removed), each.error)
        for each in apart(emissions)
        if LISTENED.fullmatch(each.rule) or each.rule == "rule" or each.kind == "error"
    ]


class OneRule:
    """A rule of a rule file over one stream."""

    def __init__(self, data: dict[str, Any], drive: Drive) -> None:
        self.data = data
        self.now = next((step["advance"] for step in data["steps"] if "advance" in step), 0)
        self.machine = Restartable(self._prepare, self.now, drive)

    def _prepare(self) -> tuple[Catalog, Plan]:
        return planned(self.data)

    def perform(self, step: Step) -> Happened:
        self.machine.restart(self.now)
        engine = self.machine.engine
        engine.dispatch.on_defect = _raise
        if "advance" in step:
            self.now = step["advance"]
            return Happened(_seen(engine.advance(self.now)), [])
        if "flush" in step:
            return Happened(_seen(engine.flush(self.now)), [])
        return Happened(_seen(engine.push(step["send"], step["events"], self.now)), [])


def planned(data: dict[str, Any]) -> tuple[Catalog, Plan]:
    """The catalog and the plan of a rule."""
    catalog, options = Catalog(), data["options"]
    define(catalog, data["ddl"])
    chosen = RuleOptions(
        late_tolerance_ms=options.get("lateTolerance", 0), event_time=options.get("isEventTime")
    )
    return catalog, plan_rule(data["sql"], catalog, chosen)


class Statements:
    """Statements of EPL."""

    def __init__(self, data: dict[str, Any], drive: Drive) -> None:
        self.session = Session(data["epl"], drive, options_of(data))

    def perform(self, step: Step) -> Happened:
        """Do a step. One that is refused, as texts of steps may be, changes nothing."""
        session = self.session
        session.restart()
        session.engine.dispatch.on_defect = _raise
        session.rows = []
        try:
            return self._performed(session, step)
        except (SqlError, DataError, Missing) as refused:
            return Happened([], [{"refused": type(refused).__name__}])

    def _performed(self, session: Session, step: Step) -> Happened:
        _check_names(session, step)
        if "read" in step:
            return Happened([], session.read(step["read"], step.get("in")))
        if "partitions" in step:
            return Happened([], session.partitions(step["partitions"]))
        if "deploy" in step or "undeploy" in step:
            session.deploy(step["deploy"]) if "deploy" in step else session.undeploy(step["undeploy"])
            return Happened([], [])
        emissions = _seen(session.emissions(step))
        return Happened(emissions, session.rows)


class Missing(Exception):
    """A step names what a changed scenario no longer declares."""


def _check_names(session: Session, step: Step) -> None:
    engine: Engine = session.engine
    known = {
        "read": engine.queries,
        "undeploy": [name for item in session.later for name in item[2]],
        "set": engine.catalog.variables,
        "variable": engine.catalog.variables,
        "send": engine.catalog.streams,
        "partitions": engine.catalog.contexts,
    }
    for word, names in known.items():
        if word in step and step[word] not in names:
            raise Missing(step[word])
