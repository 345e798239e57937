"""The search: damage, give, and keep what was answered in no documented way."""

from __future__ import annotations

import random
import traceback
from collections.abc import Iterable
from typing import NamedTuple

from tests.fuzz.mutate import mutated
from tests.fuzz.targets import Target

FOUND_MAX = 5


class Found(NamedTuple):
    """An input, and what came of it."""

    data: bytes
    trace: str


def search(target: Target, seed: int, times: Iterable[object]) -> tuple[int, list[Found]]:
    """How many inputs were given, one for each of `times`, and those that led to something else
    than a documented error."""
    dice, given, found = random.Random(seed), 0, list[Found]()
    with target.open() as take:
        for _ in times:
            if len(found) == FOUND_MAX:
                break
            data = mutated(target.good, dice)
            given += 1
            try:
                take(data)
            except Exception:  # noqa: BLE001 - any other error is what is looked for
                found.append(Found(data, traceback.format_exc()))
    return given, found
