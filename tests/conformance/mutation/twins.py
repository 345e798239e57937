"""A scenario on the slow twin, where that can compute it."""

from __future__ import annotations

from typing import Any

from sql import RuleOptions, parse
from sql.binder.scope import Site
from sql.binder.select_binder import bind
from sql.errors import DataError
from sql.syntax import Select
from tests.conformance.compare import decoded
from tests.conformance.epl import EVENT_TYPES, LISTENED, Session
from tests.conformance.mutation.drives import Happened, Seen, planned
from tests.conformance.scenario import Drive
from tests.reference import lots, samples
from tests.reference.changes import Post, Statement
from tests.reference.relations.world import World
from tests.support.streams import catalog_of

TOLD = {"advance", "catch_up", "send", "event"}
"""Of which words the steps are that the twin knows."""


class NoTwin(Exception):
    """The twin has no way to compute this."""


def happened_on_twin(data: dict[str, Any]) -> list[Happened]:
    """What each step gives by the twin, or the run as a whole. Raises NoTwin, for rows that fail too."""
    try:
        return _of_statements(data) if "epl" in data else _of_rule(data)
    except UNABLE as error:
        raise NoTwin(str(error)) from None


UNABLE = (NotImplementedError, AssertionError, DataError, TypeError, KeyError, OverflowError, RecursionError)
"""What the twin raises for what it does not know: clauses, functions, values that fail, an endless repeat."""


def _of_rule(data: dict[str, Any]) -> list[Happened]:
    _, plan = planned(data)
    steps = [{**step, "event": decoded(step["event"])} if "event" in step else step for step in data["steps"]]
    if plan.joins or plan.analytics or plan.context or plan.output or plan.options.emit_empty:
        raise NoTwin
    if plan.window is None and (plan.sources[0].lot is None or plan.timestamp is not None):
        raise NoTwin
    start, late = next((step["advance"] for step in steps if "advance" in step), 0), 0
    stream = plan.sources[0].stream
    steps = [{"advance": start}, *(step for step in steps if step.get("send", stream) == stream)]
    if plan.window is not None:
        got, late = samples.run(plan, steps)
    else:
        got = lots.run(plan, steps, start)
    seen = [Seen("rule", at, "rows", rows, []) for at, rows in got]
    return [Happened([*seen, *[Seen("rule", 0, "late", [], [])] * late], [])]


def _of_statements(data: dict[str, Any]) -> list[Happened]:
    if any(step.keys() - TOLD for step in data["steps"]) or "config" in data:
        raise NoTwin
    statements = [statement for text in data["epl"] for statement in parse(text)]
    if len(statements) == 1 and isinstance(statements[0], Select):
        plan = bind(statements[0], Site(catalog_of(EVENT_TYPES), RuleOptions(), data["epl"][0]))
        if plan.context is None and not any(source.pattern for source in plan.sources):
            return _of_one(data, Statement(plan), _name_of(statements[0]))
    if any(step.get("catch_up") != "step" for step in data["steps"] if "advance" in step):
        raise NoTwin
    return _of_many(data)


def _of_one(data: dict[str, Any], twin: Statement, name: str) -> list[Happened]:
    out = []
    for step in data["steps"]:
        posts: list[Post] = []
        if "advance" in step:
            posts = twin.advance(step["advance"], step.get("catch_up", "once"))
        elif step["send"] == twin.source.stream:
            posts = twin.send(decoded(step["event"]))
        seen = [Seen(name, each.at_ms, "rows", each.insert, each.remove) for each in posts]
        out.append(Happened(seen if LISTENED.fullmatch(name) else [], []))
    return out


def _name_of(statement: Select) -> str:
    return next((str(note.value) for note in statement.annotations if note.name == "name"), "")


def _of_many(data: dict[str, Any]) -> list[Happened]:
    session = Session(data["epl"], Drive())
    plans = {name: query.plan for name, query in session.engine.queries.items()}
    catalog = session.engine.catalog
    sources = [source for plan in plans.values() for source in plan.sources]
    if catalog.contexts or catalog.variables or any(source.recognize for source in sources):
        raise NoTwin
    if any(plan.output or plan.joins or plan.mode == "lots" for plan in plans.values()):
        raise NoTwin
    columns = {name: stream.columns for name, stream in catalog.streams.items()}
    twin = World(plans.items())
    out = []
    for step in data["steps"]:
        if "advance" in step:
            posts = twin.advance(step["advance"])
        else:
            event = {**dict.fromkeys(columns[step["send"]] or ()), **decoded(step["event"])}
            posts = twin.send(step["send"], event)
        seen = [Seen(name, at, "rows", new, old) for at, name, new, old in posts]
        out.append(Happened([each for each in seen if LISTENED.fullmatch(each.statement)], []))
    return out
