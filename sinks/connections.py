"""Connections of the gateway's configuration that actions refer to by name, like eKuiper's
`connectionSelector`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from pydantic import Field, ValidationError

from rules.base import Model, reasons_of
from sinks.base import Fatal, SinkContext
from sql.errors import did_you_mean

Settings = TypeVar("Settings", bound="ConnectionSettings")
Connection = TypeVar("Connection")


SYNONYMS = {"resourceId": "connectionSelector"}
"""The other name that eKuiper has for a connection in an action."""


class ConnectionSettings(Model):
    """A reference to a connection.

    address  the setting that has the server's address
    remedy   what to do where neither the settings nor the connection have it
    """

    address: ClassVar[str | None] = None
    remedy: ClassVar[str] = "write it there or in the action"

    connection_selector: str | None = Field(
        None,
        min_length=1,
        description=(
            "a connection of the gateway's configuration, whose settings stand in for those not written here"
        ),
    )

    @property
    def connection(self) -> str | None:
        """The connection that is meant; None where the settings stand alone."""
        return self.connection_selector


class BadConnection(ValueError):
    """A connection that is not there, or whose settings do not fit."""


def named(name: str, connections: Mapping[str, Connection]) -> Connection | None:
    """The connection of a name; None if there is none. eKuiper writes `kind.name`; the kind may be left out
    here, and a connection may be called either way."""
    return connections.get(name, connections.get(name.partition(".")[2]))


def connected(settings: Settings, context: SinkContext) -> Settings:
    """The settings completed by the connection that they name. Raises `Fatal` if that is impossible."""
    try:
        return completed(settings, context.environment.connections)
    except BadConnection as failure:
        raise Fatal(str(failure)) from None


def completed(settings: Settings, connections: Mapping[str, Mapping[str, Any]]) -> Settings:
    """The settings, with those of the connection that they name for the ones not written.
    Raises `BadConnection`."""
    name = settings.connection
    if name is None:
        return settings
    found = named(name, connections)
    if found is None:
        hint = did_you_mean(name, connections) or f"it has {', '.join(sorted(connections)) or 'none'}"
        raise BadConnection(f"connection '{name}' is not in the gateway's configuration: {hint}")
    given = {
        field.alias or key: getattr(settings, key)
        for key, field in type(settings).model_fields.items()
        if key in settings.model_fields_set
    }
    try:
        complete = type(settings).model_validate({**_that_it_knows(type(settings), found), **given})
    except ValidationError as failure:
        raise BadConnection(f"connection '{name}' does not fit: {reasons_of(failure)}") from None
    if settings.address is not None and dict(complete)[settings.address] is None:
        raise BadConnection(f"connection '{name}' has no '{settings.address}'; {settings.remedy}")
    return complete


def _that_it_knows(model: type[Model], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that a sink has settings for: a connection may serve several kinds."""
    known = {(field.alias or key).lower(): field.alias or key for key, field in model.model_fields.items()}
    return {known[key.lower()]: value for key, value in values.items() if key.lower() in known}
