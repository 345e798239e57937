"""The streaming SQL engine: text in, deltas out. It uses no network, file, thread or wall clock.

Where to start reading: `language` (text to tree), `binder` (tree to plan), `algebra` (the operators),
`compiler` (a plan as Python), `engine` (rules that run).
"""

from __future__ import annotations

from sql.binder.rule import plan_rule
from sql.catalog.streams import Catalog, Stream
from sql.emission import Emission
from sql.engine.engine import Engine
from sql.engine.script import run_script
from sql.errors import DataError, Problem, SqlError
from sql.language import parse
from sql.plan.logical import Plan
from sql.plan.options import RuleOptions

__all__ = [
    "Catalog",
    "DataError",
    "Emission",
    "Engine",
    "Plan",
    "Problem",
    "RuleOptions",
    "SqlError",
    "Stream",
    "parse",
    "plan_rule",
    "run_script",
]
