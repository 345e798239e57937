"""Catalogs from declarations."""

from __future__ import annotations

from sql import Catalog, parse
from sql.syntax import CreateStream


def define(catalog: Catalog, text: str) -> Catalog:
    """The catalog with every CREATE STREAM and create schema of `text` added."""
    for statement in parse(text):
        assert isinstance(statement, CreateStream), statement
        catalog.define(statement)
    return catalog
