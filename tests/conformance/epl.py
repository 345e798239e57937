"""EPL statements running for a scenario: deployed in order at time 0, listened to where they are named s0, s1, …"""

from __future__ import annotations

import json
import re
from typing import Any

from sql import Catalog, Emission, Engine, parse, run_script
from tests.conformance.compare import Row, decoded
from tests.conformance.scenario import Drive
from tests.conformance.structs import new_engine, structs_of

EVENT_TYPES = """
create schema E(id string, k string, v double, ts long, n int, f boolean);
create schema S(id string, n int);
create schema T(id string, n int);
"""

LISTENED = re.compile(r"s\d+")


class Session:
    """An engine with the statements of a scenario, and its clock."""

    def __init__(self, statements: list[str], drive: Drive) -> None:
        self.statements = statements
        self.drive = drive
        self.now = 0
        self.texts: dict[str, str] = {}
        self.structs: dict[str, frozenset[str]] | None = None
        self.engine = self._start()
        if drive.structs:
            self.structs = structs_of(self.engine)
            self.engine = self._start()
        for text in statements:
            for statement in parse(text):
                for note in statement.annotations:
                    if note.name == "name":
                        self.texts[str(note.value)] = statement.text

    def _start(self) -> Engine:
        engine = new_engine(Catalog(), fast=self.drive.fast, structs=self.structs)
        for text in [EVENT_TYPES, *self.statements]:
            run_script(engine, text, self.now)
        return engine

    def restart(self) -> None:
        """Save every statement and variable as JSON, discard the engine, restore into a new one."""
        if not self.drive.restarts:
            return
        old = self.engine
        saved = {
            "statements": {name: old.snapshot(name) for name in old.queries},
            "variables": {name: variable.value for name, variable in old.catalog.variables.items()},
        }
        saved = json.loads(json.dumps(saved, allow_nan=False))
        self.engine = self._start()
        for name, value in saved["variables"].items():
            self.engine.catalog.variables[name].value = value
        for name, state in saved["statements"].items():
            self.engine.restore(name, state)

    def perform(self, step: dict[str, Any]) -> list[Emission]:
        """Do a step; what the listened statements emit during it."""
        out: list[Emission] = []
        if "advance" in step:
            self.now = step["advance"]
            out = self.engine.advance(self.now, step.get("catch_up", "once"))
        elif "set" in step:
            self.engine.set_variable(step["set"], decoded(step["value"]))
        else:
            out = self.engine.push(step["send"], [decoded(event) for event in step["events"]], self.now)
        return [emission for emission in out if LISTENED.fullmatch(emission.rule)]

    def read(self, name: str) -> list[Row]:
        """The present content of a statement."""
        return self.engine.read(name)
