"""A gateway for each test."""

from tests.unit.edge.conftest import world

__all__ = ["world"]
