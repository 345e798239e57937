"""Catalogs and engines from declarations as text."""

from __future__ import annotations

from typing import Any

from sql import Catalog, Engine, RuleOptions, parse, plan_rule
from sql.binder.rule import plan_lookup
from sql.syntax import CreateStream
from sql.types import Saved


def define(catalog: Catalog, text: str) -> Catalog:
    """The catalog with every CREATE STREAM, CREATE TABLE and create schema of `text` added."""
    for statement in parse(text):
        assert isinstance(statement, CreateStream), statement
        catalog.define(statement)
        if catalog.streams[statement.name].kind == "lookup":
            plan_lookup(statement, text, catalog, RuleOptions())
    return catalog


def catalog_of(text: str) -> Catalog:
    """A catalog with these declarations."""
    return define(Catalog(), text)


def engine_of(text: str, rule: str, state: Saved = None, **options: Any) -> Engine:
    """An engine with these declarations and the rule `r`, deployed at 0, perhaps with an earlier state."""
    engine = Engine(catalog_of(text))
    engine.deploy("r", plan_rule(rule, engine.catalog, RuleOptions(**options)), 0, state)
    return engine
