"""A scenario read from a file, and what running it can end in."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Literal

from tests.conformance.noise import with_noise

Mode = Literal["single", "batched", "restart", "mixed", "struct"]


@dataclass(frozen=True)
class Drive:
    """How the engine is driven through a scenario."""

    batched: bool = False
    """The events of an instant in one push, not one by one."""
    restarts: bool = False
    """Before every step the state is taken, written as JSON and put into a new engine."""
    structs: bool = False
    """Events are structs of the columns that are read, wherever the gateway would decode them into such."""


BOTH = (False, True)

DRIVES: dict[Mode, tuple[Drive, ...]] = {
    "single": (Drive(),),
    "batched": (Drive(batched=True),),
    "restart": (Drive(restarts=True), Drive(restarts=True, batched=True)),
    "mixed": tuple(Drive(batched=batched, restarts=restarts) for batched, restarts in product(BOTH, BOTH)),
    "struct": (
        Drive(structs=True),
        *(Drive(structs=True, batched=together, restarts=together) for together in BOTH),
    ),
}
"""The ways in which a scenario must give the same, by mode."""

DECISIONS = Path(__file__).parent / "decisions.jsonl"
"""What we expect where the reference behaviour is a defect, by the scenario's name."""


@dataclass(frozen=True)
class Scenario:
    """One line of a scenario file."""

    name: str
    data: dict[str, Any] = field(repr=False)

    @property
    def is_epl(self) -> bool:
        """Whether it is written in the EPL format (statements with expectations per step)."""
        return "epl" in self.data

    @property
    def is_lots(self) -> bool:
        """Whether it is a stream query with the lots expected."""
        return "query" in self.data

    @property
    def is_live(self) -> bool:
        """Whether it holds what a live eKuiper answered."""
        return "ekuiper" in self.data

    @property
    def text(self) -> str:
        """The query text."""
        return (
            "\n".join(self.data["epl"])
            if self.is_epl
            else str(self.data.get("sql") or self.data.get("query") or self.data["expr"])
        )

    @property
    def steps(self) -> list[dict[str, Any]]:
        return list(self.data["steps"])


COLLECTED = ", collect(id) AS ids"
"""The one column of the random rules that keeps them off the generated loop."""


class Skip(Exception):
    """The scenario cannot be judged; says why."""


class Difference(Exception):
    """The engine did something else; says what, in several lines."""


def load(path: Path) -> list[Scenario]:
    """The scenarios of a JSON-lines file, those with a decision of ours as decided."""
    scenarios = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip():
            data = json.loads(line)
            name = data.get("name") or data.get("sql") or data["expr"]
            scenarios.append(Scenario(name, _decided(data) if "name" in data else data))
    return scenarios


def _decided(data: dict[str, Any]) -> dict[str, Any]:
    """The scenario with our decision in place of the reference behaviour, where there is one for it."""
    decision = _decisions().get(data["name"])
    if decision is None or decision["epl"] != data["epl"]:
        return {**data, "steps": with_noise(data["steps"], "\n".join(data["epl"]))} if "epl" in data else data
    steps = [dict(step) for step in data["steps"]]
    for step in steps:
        step.pop("expect", None)
    for index, expect in decision["expect"].items():
        steps[int(index)]["expect"] = expect
    for what in ("content", "rows"):
        for index, rows in decision.get(what, {}).items():
            steps[int(index)][what] = rows
    return {**data, "steps": steps, "decided": True}


def _decisions() -> dict[str, dict[str, Any]]:
    if not _known and DECISIONS.exists():
        lines = DECISIONS.read_text(encoding="utf-8").splitlines()
        _known.update((item["name"], item) for item in map(json.loads, filter(None, lines)))
    return _known


_known: dict[str, dict[str, Any]] = {}
