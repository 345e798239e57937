"""Makes a new scenario of one or two known ones."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Any

from tests.conformance.mutation import happenings, queries
from tests.conformance.mutation.drives import uniform
from tests.conformance.mutation.fragments import Fragments
from tests.conformance.steps import Step

Data = dict[str, Any]

STEPS_MAX = 60
WAY_MAX_MS = 600_000


class Mutants:
    """The scenarios given, and all that can be made of them. Each number of a seed makes the same one."""

    def __init__(self, scenarios: Sequence[Data], seed: int) -> None:
        known = [uniform(data) for data in scenarios if "steps" in data or "query" in data]
        self.seed = seed
        self.families: dict[str, list[Data]] = {}
        for data in known:
            self.families.setdefault(family_of(data), []).append(data)
        self.fragments = {
            family: Fragments.of(text for data in each for text in texts_of(data))
            for family, each in self.families.items()
        }

    def make(self, number: int) -> Data:
        """The scenario of this number."""
        dice = random.Random(f"{self.seed}/{number}")
        family = dice.choice(sorted(self.families))
        data = dice.choice(self.families[family])
        steps = list(data["steps"])
        if dice.random() < 0.25 and len(self.families[family]) > 1:
            data, steps = joined(data, dice.choice(self.families[family]), dice)
        for _ in range(dice.choice((0, 1, 1, 2, 3))):
            data = with_changed_text(data, self.fragments[family], dice)
        data, steps = elsewhen(data, steps, dice)
        odd = dice.random() < 0.3
        for _ in range(dice.choice((0, 1, 2, 4, 8))):
            steps = happenings.changed(steps, dice, odd=odd) if steps else steps
        return {**data, "steps": _shorter(steps[:STEPS_MAX])}


def _shorter(steps: list[Step]) -> list[Step]:
    """Without long ways through every due instant: some queries have one each millisecond."""
    out, now = [], 0
    for step in steps:
        is_long = step.get("advance", now) > now + WAY_MAX_MS
        out.append({**step, "catch_up": "once"} if is_long else step)
        now = step.get("advance", now)
    return out


def family_of(data: Data) -> str:
    """Scenarios of one family have the same streams, and their texts one grammar."""
    if "epl" in data:
        return "statements"
    return "lots" if data["sql"].startswith("from ") else "rules"


def texts_of(data: Data) -> list[str]:
    """The texts of its queries."""
    return list(data["epl"]) if "epl" in data else [data["sql"]]


def with_changed_text(data: Data, known: Fragments, dice: random.Random) -> Data:
    """The scenario with one of its statements changed."""
    if "epl" not in data:
        return {**data, "sql": queries.changed(data["sql"], known, dice)}
    script = list(data["epl"])
    place = dice.randrange(len(script))
    statements = re.split(r"(?<=;)", script[place])
    chosen = dice.randrange(len(statements))
    statements[chosen] = queries.changed(statements[chosen], known, dice)
    if not statements[chosen].rstrip().endswith(";") and chosen + 1 < len(statements):
        statements[chosen] += ";"
    script[place] = "".join(statements)
    return {**data, "epl": script}


def elsewhen(data: Data, steps: list[Step], dice: random.Random) -> tuple[Data, list[Step]]:
    """A rule in another kind of time; statements of which some come later or go; variables that change."""
    if "epl" not in data:
        in_time = "TIMESTAMP" in data["ddl"] and dice.random() < 0.2
        return {**data, "options": dice.choice(TIMES)} if in_time else data, steps
    if dice.random() < 0.15:
        data, steps = happenings.come_later(data, steps, dice)
    if dice.random() < 0.5:
        steps = happenings.set_variable(data, steps, dice)
    return data, steps


TIMES: tuple[dict[str, Any], ...] = (
    {}, *({"isEventTime": True, "lateTolerance": late} for late in (0, 1, 1000, 2500, 60_000))
)  # fmt: skip


def joined(data: Data, other: Data, dice: random.Random) -> tuple[Data, list[Step]]:
    """Statements of both, or the query of the one, and the steps of both in turn."""
    steps, more = list(data["steps"]), [step for step in other["steps"] if "advance" not in step]
    if "epl" not in data:
        return {**data, "sql": other["sql"]} if other["ddl"] == data["ddl"] else data, steps
    texts = [re.sub(r"'s(\d+)'", r"'s1\1'", text) for text in other["epl"]]
    if dice.random() < 0.5:
        texts = [re.sub(r"\b(W|V|TB|C|M|lim)\b", r"\g<1>2", text) for text in texts]
    for step in more:
        steps.insert(dice.randrange(len(steps) + 1), step)
    return {**data, "epl": [*data["epl"], *texts]}, steps
