"""The streaming SQL engine: text in, deltas out. It uses no network, file, thread or wall clock.

Where to start reading: `language` (text to tree), `binder` (tree to plan), `algebra` (the operators),
`compiler` (a plan as Python), `engine` (rules that run).

A name is imported when it is first used: a process that runs plans without reading SQL loads neither the
parser nor the binder.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sql.binder.reading_text import parse
    from sql.binder.rule import plan_rule
    from sql.catalog.streams import Catalog, Stream
    from sql.emission import Emission
    from sql.engine.engine import Engine
    from sql.engine.script import run_script
    from sql.errors import DataError, Problem, SqlError
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

_MODULES = {
    "Catalog": "sql.catalog.streams",
    "DataError": "sql.errors",
    "Emission": "sql.emission",
    "Engine": "sql.engine.engine",
    "Plan": "sql.plan.logical",
    "Problem": "sql.errors",
    "RuleOptions": "sql.plan.options",
    "SqlError": "sql.errors",
    "Stream": "sql.catalog.streams",
    "parse": "sql.binder.reading_text",
    "plan_rule": "sql.binder.rule",
    "run_script": "sql.engine.script",
}
"""The module of each name."""


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'sql' has no attribute '{name}'")
    found: object = vars(import_module(module))[name]
    globals()[name] = found
    return found
