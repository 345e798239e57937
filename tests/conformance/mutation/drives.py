"""Runs a scenario in one way and keeps what it gives, step by step, whatever the file expects."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sql import Catalog, Emission, Engine, Plan, RuleOptions, SqlError, plan_rule
from sql.emission import apart
from sql.engine.context.host import ContextHost
from sql.errors import DataError
from sql.explain.tree import explain
from sql.plan.declared import Declaration
from tests.conformance.compare import Row, decoded
from tests.conformance.epl import BESIDE, LISTENED, Session
from tests.conformance.lots import STREAM
from tests.conformance.restart import Restartable, nobody
from tests.conformance.run import options_of
from tests.conformance.scenario import Drive
from tests.conformance.steps import Step
from tests.support.streams import define


class Way(NamedTuple):
    """A way of running a scenario.

    halves   time goes on by half of the way first, where it goes through every due instant
    swapped  before each step each rule takes its own place in the running engine, with its state
    company  other rules run beside those that are listened to, alike but for constants
    among    before each step the state goes into a new engine; other rules run there before those that are
             listened to at one step, and do not at the next
    looked   before each step everything of each rule is read, which changes nothing
    """

    drive: Drive = Drive()
    halves: bool = False
    swapped: bool = False
    company: bool = False
    among: bool = False
    looked: bool = False


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


def drive_through(data: dict[str, Any], way: Way, parts: Sequence[Sequence[int]]) -> list[Happened]:
    """What each part of the steps gives: consecutive sends to one stream in one push."""
    machine = Statements(data, way) if "epl" in data else OneRule(data, way)
    out = []
    for part in parts:
        steps = [data["steps"][index] for index in part]
        step = {**steps[0], "events": [decoded(step["event"]) for step in steps if "send" in step]}
        halves = _halves(step, machine) if way.halves else [step]
        found = [machine.perform(half) for half in halves]
        out.append(Happened([each for part in found for each in part.emissions], found[-1].rows))
    return out


def _halves(step: Step, machine: OneRule | Statements) -> list[Step]:
    """A step of time that goes through every due instant as two."""
    middle = (machine.now + step.get("advance", machine.now)) // 2
    if step.get("catch_up", machine.catch_up) != "step" or middle <= machine.now:
        return [step]
    return [{**step, "advance": middle}, step]


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
        Seen(_name_of(each), each.at_ms, each.kind, each.inserted, list(each.removed), each.error)
        for each in apart(emissions)
        if LISTENED.fullmatch(each.rule) or each.rule == "rule" or _is_error(each)
    ]


def _name_of(each: Emission) -> str:
    """Its statement. The number of one without a name depends on the statements before it."""
    return "statement" if UNNAMED.fullmatch(each.rule) else each.rule


UNNAMED = re.compile(r"statement-\d+")


def _is_error(each: Emission) -> bool:
    return each.kind == "error" and not each.rule.startswith(BESIDE)


def swap(engine: Engine, now: int) -> None:
    """Put each rule in its own place, with its state; what declares something others may read stays."""
    for name, query in list(engine.queries.items()):
        if isinstance(query, ContextHost) or isinstance(query.plan.acts, Declaration):
            continue
        plan = getattr(query, "inner", query.plan)
        engine.deploy(name, plan, now, json.loads(json.dumps(engine.snapshot(name), allow_nan=False)))


def look(engine: Engine) -> None:
    """Read the plan, the content, the counters and the state of each rule."""
    for name, query in engine.queries.items():
        engine.snapshot(name)
        engine.counters(name)
        if not isinstance(query, ContextHost):
            engine.read(name)
            explain(getattr(query, "inner", query.plan))


def before_step(engine: Engine, way: Way, now: int) -> None:
    """What a way does before each step."""
    engine.dispatch.on_defect = _raise
    if way.looked:
        look(engine)
    if way.swapped:
        swap(engine, now)


class OneRule:
    """A rule of a rule file over one stream."""

    catch_up = "step"

    def __init__(self, data: dict[str, Any], way: Way) -> None:
        self.data = data
        self.way = way
        self.now = next((step["advance"] for step in data["steps"] if "advance" in step), 0)
        self.machine = Restartable(self._prepare, self.now, way.drive)
        self.steps = 0
        if way.company:
            self._bring_company(self.machine.engine)

    def _prepare(self) -> tuple[Catalog, Plan]:
        return planned(self.data)

    def _bring_company(self, engine: Engine) -> None:
        text = self.data["sql"]
        for number, other in enumerate((text, *(_with_number(text, place) for place in range(3)))):
            try:
                _, plan = planned({**self.data, "sql": other})
            except SqlError:
                continue
            engine.deploy(f"{BESIDE}{number}", plan, self.now)

    def perform(self, step: Step) -> Happened:
        self.machine.restart(self.now)
        self.steps += 1
        if self.way.among:
            self.machine.renew(self.now, self._bring_company if self.steps % 2 else nobody)
        engine = self.machine.engine
        before_step(engine, self.way, self.now)
        if "advance" in step:
            self.now = step["advance"]
            return Happened(_seen(engine.advance(self.now)), [])
        if "flush" in step:
            return Happened(_seen(engine.flush(self.now)), [])
        return Happened(_seen(engine.push(step["send"], step["events"], self.now)), [])


def _with_number(text: str, place: int) -> str:
    """A rule with another number in the place of one behind WHERE or HAVING."""
    found = [*NUMBER.finditer(text, text.upper().find("WHERE") if "WHERE" in text.upper() else 0)]
    if not found:
        return text
    match = found[place % len(found)]
    return f"{text[: match.start()]}{int(match.group()) + 1 + place}{text[match.end() :]}"


NUMBER = re.compile(r"(?<![\w.'])\d+(?![\w.'])")


def planned(data: dict[str, Any]) -> tuple[Catalog, Plan]:
    """The catalog and the plan of a rule."""
    catalog, options = Catalog(), data["options"]
    define(catalog, data["ddl"])
    chosen = RuleOptions(
        late_tolerance_ms=options.get("lateTolerance", 0),
        event_time=options.get("isEventTime"),
        zone=options.get("zone", "UTC"),
        emit_empty=options.get("emitEmpty", False),
    )
    return catalog, plan_rule(data["sql"], catalog, chosen)


class Statements:
    """Statements of EPL."""

    catch_up = "once"

    def __init__(self, data: dict[str, Any], way: Way) -> None:
        self.way = way
        self.texts, self.steps = data["epl"], 0
        texts = [*self.texts, *filter(None, map(_beside, self.texts))] if way.company else self.texts
        self.session = Session(texts, way.drive, options_of(data))

    @property
    def now(self) -> int:
        return self.session.now

    def perform(self, step: Step) -> Happened:
        """Do a step. One that is refused, as texts of steps may be, changes nothing."""
        session = self.session
        session.restart()
        self.steps += 1
        if self.way.among:
            session.renew(_with_guests(self.texts) if self.steps % 2 else self.texts)
        before_step(session.engine, self.way, session.now)
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


def _with_guests(texts: Sequence[str]) -> list[str]:
    """Each statement that gives rows once more before it."""
    return [each for text in texts for each in (_beside(text), text) if each is not None]


def _beside(text: str) -> str | None:
    """A statement once more, if all it does is to give rows."""
    if ";" in text.rstrip(" ;") or not SELECTS.match(text):
        return None
    return re.sub(r"(?<=@name\(')", BESIDE, text, flags=re.IGNORECASE)


SELECTS = re.compile(
    r"(?:context \w+ +)?@name\('s\d+'\)\s*(?:context \w+\s+)?select\b(?!.*\bthen\s+set\b)",
    re.IGNORECASE | re.DOTALL,
)


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
    for name in NAMED.findall(step.get("deploy", "")):
        if name in engine.queries:
            raise Missing(f"another name than {name}")


NAMED = re.compile(r"@name\('([^']*)'\)", re.IGNORECASE)
