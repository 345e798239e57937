"""Connections of the gateway's configuration that actions refer to by name, as eKuiper's
`connectionSelector` does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import Field, ValidationError

from rules.base import Model
from sinks.base import Fatal, SinkContext
from sql.errors import did_you_mean

Settings = TypeVar("Settings", bound=Model)


SYNONYMS = {"resourceId": "connectionSelector"}
"""How eKuiper also names a connection in an action."""


class ConnectionSettings(Model):
    """A reference to a connection."""

    connection_selector: str | None = Field(
        None,
        min_length=1,
        description="a connection of the gateway's configuration, whose settings stand in for those not written here",
    )


def connected(settings: Settings, name: str | None, context: SinkContext) -> Settings:
    """The settings completed by the connection `name`; what is written in the action wins.

    eKuiper writes `kind.name`; the kind may be left out here, and a connection may be called either way.
    Raises `Fatal` where there is no such connection, or its settings do not fit.
    """
    if name is None:
        return settings
    connections = context.environment.connections
    found = connections.get(name, connections.get(name.partition(".")[2]))
    if found is None:
        hint = did_you_mean(name, connections) or f"it has {', '.join(sorted(connections)) or 'none'}"
        raise Fatal(f"connection '{name}' is not in the gateway's configuration: {hint}")
    given = {
        field.alias or key: getattr(settings, key)
        for key, field in type(settings).model_fields.items()
        if key in settings.model_fields_set
    }
    return _completed(settings, {**_that_it_knows(type(settings), found), **given}, name)


def _completed(settings: Settings, values: Mapping[str, Any], name: str) -> Settings:
    try:
        return type(settings).model_validate(values)
    except ValidationError as failure:
        reasons = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in failure.errors())
        raise Fatal(f"connection '{name}' does not fit: {reasons}") from None


def _that_it_knows(model: type[Model], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that mean something to a sink: a connection may serve several kinds."""
    known = {(field.alias or key).lower(): field.alias or key for key, field in model.model_fields.items()}
    return {known[key.lower()]: value for key, value in values.items() if key.lower() in known}
