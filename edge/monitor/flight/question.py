"""A question to the flight recorder, as the gateway hands it to the process that answers."""

from __future__ import annotations

import msgspec

from edge.monitor.flight.facts import Facts


class Settings(msgspec.Struct, frozen=True):
    """The part of the gateway's configuration that a rerun needs."""

    data: str
    rules: str
    zone: str = "UTC"
    secrets_dir: str | None = None
    secrets_prefixes: tuple[str, ...] = ("PENSTOCK_",)
    secrets_allow: tuple[str, ...] | None = None
    secrets_reserved: tuple[str, ...] = ()
    outgoing_allow: tuple[str, ...] | None = None
    payload_bytes_max: int = 1_000_000
    grace_ms: int = 0
    brokers: tuple[str, ...] = ()
    """The names of further connections to brokers."""


class Question(msgspec.Struct, frozen=True):
    """A question, with the data about the gateway that its answer needs."""

    settings: Settings
    facts: Facts
    rule: str
    from_ms: int
    key: str | None = None
    as_test: bool = False
    timeline: bool = False
