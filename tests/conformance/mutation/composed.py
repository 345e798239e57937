"""Scenarios made from nothing: statements that feed each other, rules of analytic functions, zones, joins.

The scenarios of the files have one statement each that gives rows, or few. Here every relation, derived
stream and context of a scenario is read by those that follow, so that mutants edit the middle of a chain.
"""

from __future__ import annotations

import random
from typing import Any

from tests.conformance.mutation.modules import Module
from tests.conformance.mutation.single_rules import rule

Data = dict[str, Any]


def composed(seed: int, count: int) -> list[Data]:
    """So many scenarios, half of them modules of statements, half single rules."""
    dice = random.Random(f"composed/{seed}")
    return [Module(dice).scenario() if number % 2 else rule(dice) for number in range(count)]
