"""EPL statements running for a scenario: deployed in order at time 0, listened to where
they are named s0, s1, …"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from sql import Catalog, Emission, Engine, RuleOptions, parse
from sql.algebra.context.selectors import selector_of
from sql.engine.script import run_statements
from sql.syntax import Statement
from tests.conformance.compare import Row, decoded
from tests.conformance.scenario import Drive
from tests.conformance.structs import StructEngine, new_engine, structs_of

EVENT_TYPES = """
create schema E(id string, k string, v double, ts long, n int, f boolean);
create schema S(id string, n int);
create schema T(id string, n int);
"""

BESIDE = "beside "
"""The names of statements that run beside those of a scenario begin so."""

LISTENED = re.compile(r"s\d+")


@cache
def parsed(text: str) -> tuple[Statement, ...]:
    """The statements of a text. Trees cannot be changed, so restarts deploy the same ones."""
    return tuple(parse(text))


class Session:
    """An engine with the statements of a scenario, and its clock."""

    def __init__(self, statements: list[str], drive: Drive, options: RuleOptions | None = None) -> None:
        self.statements = statements
        self.options = options
        self.drive = drive
        self.now = 0
        self.texts: dict[str, str] = {}
        self.later: list[tuple[str, int, list[str]]] = []
        """What steps have deployed, when, and the names of its statements."""
        self.structs: dict[str, frozenset[str]] | None = {} if drive.structs else None
        self.rows: list[Row] = []
        """What the last question answered, or the value of a variable."""
        self.engine = self._start()
        self._reshape()
        for text in statements:
            self._note(text)

    def _start(self) -> Engine:
        engine = new_engine(Catalog(), structs=self.structs)
        for text in [EVENT_TYPES, *self.statements]:
            run_statements(engine, parsed(text), text, self.now, self.options)
        for place, (text, at, _) in enumerate(self.later):
            self.later[place] = text, at, run_statements(engine, parsed(text), text, at, self.options)
        return engine

    def _note(self, text: str) -> None:
        """Remember the text of each named statement."""
        for statement in parsed(text):
            for note in statement.annotations:
                if note.name == "name":
                    self.texts[str(note.value)] = statement.text

    def deploy(self, text: str) -> None:
        """Statements that are deployed now; SqlError where they are refused."""
        names = run_statements(self.engine, parsed(text), text, self.now, self.options)
        self.later.append((text, self.now, names))
        self._note(text)
        self._reshape()

    def undeploy(self, name: str) -> None:
        """What was deployed together with a statement goes, in reverse order; SqlError where it cannot."""
        found = next(item for item in self.later if name in item[2])
        for known in reversed(found[2]):
            self.engine.remove(known)
        self.later.remove(found)
        self._reshape()

    def _reshape(self) -> None:
        """Rows of other columns where the statements now read others of a stream, as in the gateway."""
        if isinstance(self.engine, StructEngine) and (found := structs_of(self.engine)) != self.structs:
            self.structs = found
            self._renew()

    def restart(self) -> None:
        """Save every statement and variable as JSON, discard the engine, restore into a new one."""
        if self.drive.restarts:
            self._renew()

    def renew(self, statements: Sequence[str]) -> None:
        """Put the state into a new engine, in which other statements run beside those of the scenario."""
        self.statements = list(statements)
        self._renew()

    def _renew(self) -> None:
        old = self.engine
        saved = {
            "statements": {name: old.snapshot(name) for name in _own(old)},
            "variables": old.catalog.variables_snapshot(),
        }
        saved = json.loads(json.dumps(saved, allow_nan=False))
        self.engine = self._start()
        self.engine.catalog.restore_variables(saved["variables"])
        # Statements without a name have other numbers where one before them is gone.
        for name, state in zip(_own(self.engine), saved["statements"].values(), strict=True):
            self.engine.restore(name, state)

    def perform(self, step: dict[str, Any]) -> list[Emission]:
        """Do a step; what the listened statements emit during it."""
        return [emission for emission in self.emissions(step) if LISTENED.fullmatch(emission.rule)]

    def emissions(self, step: dict[str, Any]) -> Sequence[Emission]:
        """Do a step; what all statements emit during it."""
        out: Sequence[Emission] = []
        if "advance" in step:
            self.now = step["advance"]
            out = self.engine.advance(self.now, step.get("catch_up", "once"))
        elif "set" in step:
            self.engine.set_variable(step["set"], decoded(step["value"]))
        elif "query" in step:
            chosen = selector_of(step["in"]) if "in" in step else None
            answer = self.engine.query(step["query"], self.now, selector=chosen)
            self.rows, out = answer.rows, answer.emissions
        elif "variable" in step:
            self.rows = [{"value": self.engine.catalog.variables[step["variable"]].value}]
        else:
            out = self.engine.push(step["send"], [decoded(event) for event in step["events"]], self.now)
        return out

    def read(self, name: str, selector: Any = None) -> list[Row]:
        """The present content of a statement, in the partitions a selector chooses."""
        return self.engine.read(name, None if selector is None else selector_of(selector))

    def partitions(self, context: str) -> list[Row]:
        """The live partitions of a context with their built-in properties, NULLs left out."""
        return [without_nulls(row) for row in self.engine.partitions(context)]


def _own(engine: Engine) -> list[str]:
    """The statements of the scenario."""
    return [name for name in engine.queries if not name.startswith(BESIDE)]


def without_nulls(row: Row) -> Row:
    """A row, and the rows in it, without NULLs."""
    return {
        name: without_nulls(value) if isinstance(value, dict) else value
        for name, value in row.items()
        if value is not None
    }
