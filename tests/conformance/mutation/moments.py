"""What happens to a composed scenario, and when."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from tests.conformance.steps import Step

PAUSES_MS = (0, 0, 100, 250, 500, 500, 1000, 1000, 1500, 2000, 3000)


def moments(dice: random.Random, windows: Sequence[str]) -> list[Step]:
    """Events of E, S and T, time in between, values of the variable, questions."""
    steps: list[Step] = []
    now = 0
    for number in range(dice.choice((5, 8, 12, 16))):
        now += dice.choice(PAUSES_MS)
        steps.append({"advance": now, "catch_up": "step"})
        steps.append(_step(dice, number, now, windows))
    return [*steps, {"advance": now + dice.choice((1, 1000, 10_000)), "catch_up": "step"}]


def _step(dice: random.Random, number: int, now: int, windows: Sequence[str]) -> Step:
    chance = dice.random()
    if chance < 0.03:
        return {"set": "lim", "value": dice.choice((0, 1, 2, 3, None))}
    if chance < 0.06 and windows:
        return {"query": f"select id, n from {dice.choice(windows)} order by id, n"}
    if chance < 0.07:
        return {"read": "s0"}
    if chance < 0.35:
        return {
            "send": dice.choice("ST"),
            "event": {"id": dice.choice("ABC"), "n": dice.choice((0, 1, 2, 3))},
        }
    return {"send": "E", "event": event(dice, number, now)}


def event(dice: random.Random, number: int, now: int) -> dict[str, Any]:
    """An event with most columns, seldom NULL, its time stamp near the clock."""
    values: dict[str, Any] = {
        "id": f"e{number}", "k": dice.choice("ABC"), "v": dice.choice((0.0, 1.0, 2.5, 7.5, None)),
        "n": dice.choice((0, 1, 2, 3, 4, None)), "ts": now + dice.choice((0, 0, 0, 500, -500, -1500)),
        "f": dice.choice((True, False)),
    }  # fmt: skip
    return {name: value for name, value in values.items() if value is not None}
