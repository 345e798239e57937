"""Catalogs from declarations."""

from __future__ import annotations

from sql import Catalog, RuleOptions, parse
from sql.binder.rule import plan_lookup
from sql.syntax import CreateStream


def define(catalog: Catalog, text: str) -> Catalog:
    """The catalog with every CREATE STREAM, CREATE TABLE and create schema of `text` added."""
    for statement in parse(text):
        assert isinstance(statement, CreateStream), statement
        catalog.define(statement)
        if catalog.streams[statement.name].kind == "lookup":
            plan_lookup(statement, text, catalog, RuleOptions())
    return catalog
