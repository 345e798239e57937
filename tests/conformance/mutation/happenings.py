"""Changes of what happens: events, their values, their times."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import Any

from tests.conformance.steps import Step

USUAL: dict[str, Sequence[Any]] = {
    "id": ("e1", "e2", "A", "B", None),
    "k": ("A", "B", "C", None),
    "dev": ("a", "b", "c", None),
    "u": ("x", "y", None),
    "v": (0.0, 1.0, 2.5, 7.5, 10.0, -1.0, None),
    "n": (0, 1, 2, 3, 4, None),
    "f": (True, False, None),
}
ODD: Sequence[Any] = (
    "", "ü€😀", "NaN", "Infinity", "-Infinity", "1", 0, -1, 1, 2.5, True, False, 10**30, -(2**63), 2**53 + 1,
    1e308, -1e308, 5e-324, -0.0, 0.1, None, [1, 2], {"a": 1}, "x" * 300,
)  # fmt: skip
"""Values of any type; a declared type is not checked by the engine unless asked."""

ALWAYS = ("id",)
"""Columns that each stream of the scenarios has."""

JUMPS_MS = (0, 0, 1, 250, 500, 999, 1000, 1001, 1500, 2000, 5000, 60_000)


def changed(steps: Sequence[Step], dice: random.Random, *, odd: bool) -> list[Step]:
    """Steps with one change; only if `odd` with values of wrong types."""
    return dice.choice(CHANGES)([dict(step) for step in steps], dice, odd)


def _event_places(steps: Sequence[Step]) -> list[int]:
    return [place for place, step in enumerate(steps) if "event" in step]


def alter_event(steps: list[Step], dice: random.Random, odd: bool) -> list[Step]:
    """Another value of one column, or none."""
    if not (places := _event_places(steps)):
        return steps
    place = dice.choice(places)
    event = dict(steps[place]["event"])
    stream = steps[place]["send"]
    like = [step["event"] for step in steps if step.get("send") == stream]
    name = dice.choice(sorted({*ALWAYS, *(name for each in like for name in each)}))
    if dice.random() < 0.15:
        event.pop(name, None)
    elif name == "ts":
        event[name] = (
            event.get(name, 0) + dice.choice((0, 1, -1, -500, 1000, -2000, 5000))
            if not odd
            else (dice.choice(ODD))
        )
    else:
        event[name] = dice.choice(ODD if odd or name not in USUAL else USUAL[name])
    steps[place] = {**steps[place], "event": event}
    return steps


def repeat_event(steps: list[Step], dice: random.Random, odd: bool) -> list[Step]:
    """An event again, at once or later."""
    if not (places := _event_places(steps)):
        return steps
    steps.insert(dice.choice(places), dict(steps[dice.choice(places)]))
    return steps


def drop_step(steps: list[Step], dice: random.Random, odd: bool) -> list[Step]:
    """A step less: where it moved the clock, the next event comes at the instant of the last."""
    if len(steps) > 1:
        del steps[dice.randrange(len(steps))]
    return steps


def move_clock(steps: list[Step], dice: random.Random, odd: bool) -> list[Step]:
    """More or less time between two steps, and all that comes after it later or earlier."""
    places = [place for place, step in enumerate(steps) if "advance" in step]
    if len(places) < 2:
        return steps
    before, place = sorted(dice.sample(places, 2))
    shift = steps[before]["advance"] + dice.choice(JUMPS_MS) - steps[place]["advance"]
    for step in steps[place:]:
        if "advance" in step:
            step["advance"] += shift
    last = 0
    for step in steps:
        if "advance" in step:
            step["advance"] = last = max(last, step["advance"])
    return steps


def add_advance(steps: list[Step], dice: random.Random, odd: bool) -> list[Step]:
    """The clock stands where it stood, or goes half of the way."""
    places = [place for place, step in enumerate(steps) if "advance" in step]
    if places:
        place = dice.choice(places)
        before = max((step["advance"] for step in steps[:place] if "advance" in step), default=0)
        middle = before + (steps[place]["advance"] - before) // 2
        steps.insert(place, {**steps[place], "advance": dice.choice((before, middle))})
    return steps


def change_stream(steps: list[Step], dice: random.Random, odd: bool) -> list[Step]:
    """An event of another stream of the scenario, or another way to catch up."""
    place = dice.randrange(len(steps))
    if "send" in steps[place]:
        steps[place]["send"] = dice.choice([step["send"] for step in steps if "send" in step])
    elif "advance" in steps[place]:
        steps[place]["catch_up"] = dice.choice(("once", "step"))
    return steps


SELECT = re.compile(r"\s*@name\('([^']*)'\)\s*(?:context \w+\s+)?select\b", re.IGNORECASE)
VARIABLE = re.compile(r"create\s+variable\s+(\w+)\s+(\w+)", re.IGNORECASE)

VALUES: dict[str, Sequence[Any]] = {
    "int": (0, 1, 2, 3, -1, 100, None),
    "long": (0, 1, 2, 3, -1, 100, None),
    "double": (0.0, 1.0, 2.5, -1.0, None),
    "boolean": (True, False, None),
    "bool": (True, False, None),
    "string": ("A", "B", "x", None),
}


def set_variable(data: dict[str, Any], steps: list[Step], dice: random.Random) -> list[Step]:
    """A variable of the scenario gets another value, once or several times."""
    declared = [found for text in data["epl"] for found in VARIABLE.findall(text)]
    if declared:
        for _ in range(dice.choice((1, 1, 2, 4))):
            kind, name = dice.choice(declared)
            value = dice.choice(VALUES.get(kind.lower(), VALUES["int"]))
            steps.insert(dice.randrange(len(steps) + 1), {"set": name, "value": value})
    return steps


def come_later(
    data: dict[str, Any], steps: list[Step], dice: random.Random
) -> tuple[dict[str, Any], list[Step]]:
    """The last statements are deployed between two steps; one of them may go, and come again."""
    texts = [part for text in data["epl"] for part in re.split(r"(?<=;)\s*", text) if part]
    first = dice.randrange(len(texts))
    later = texts[first:]
    place = dice.randrange(len(steps) + 1)
    steps = [*steps[:place], *({"deploy": text} for text in later), *steps[place:]]
    if dice.random() < 0.5 and (found := SELECT.match(later[-1])):
        gone = dice.randrange(place + len(later), len(steps) + 1)
        again = [{"deploy": later[-1]}] if dice.random() < 0.5 else []
        steps = [*steps[:gone], {"undeploy": found[1]}, *again, *steps[gone:]]
    return {**data, "epl": texts[:first]}, steps


CHANGES: tuple[Callable[[list[Step], random.Random, bool], list[Step]], ...] = (
    alter_event, alter_event, alter_event, repeat_event, drop_step, move_clock, add_advance, change_stream,
)  # fmt: skip
