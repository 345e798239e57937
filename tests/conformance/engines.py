"""Engines for the modes a scenario is driven in."""

from __future__ import annotations

import inspect
from typing import Any

from sql import Catalog, Engine
from tests.conformance.scenario import Mode, Skip


def new_engine(catalog: Catalog, mode: Mode = "single") -> Engine:
    """An engine without statements: on the generated loop in mode `fast`, on operators in the others."""
    choices: dict[str, Any] = {}
    if "fast" in inspect.signature(Engine).parameters:
        choices["fast"] = mode == "fast"
    elif mode == "fast":
        raise Skip("this engine has no generated loop")
    return Engine(catalog, **choices)
