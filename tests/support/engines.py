"""Engines for tests of the engine alone."""

from __future__ import annotations

from sql import Catalog, Engine, run_script


def engine_of(*scripts: str) -> Engine:
    """An engine that runs the statements of these scripts since time 0."""
    engine = Engine(Catalog())
    for script in scripts:
        run_script(engine, script, 0)
    return engine
