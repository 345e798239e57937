"""The state of one connection to a broker: the session that the broker keeps, and the messages it may send
again.

A packet id means something within one session only, so each connection has its own state. Connections have
names: `MAIN` for the gateway's own broker, and for each further one the name that CONF_KEY of streams gives.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from edge.intake.redelivery import Redeliveries
from edge.journal.record import Session

MAIN = ""
"""The connection to the gateway's own broker."""


def source_name(connection: str) -> str:
    """The name of a connection among the sources, in status, metrics and logs.

    >>> source_name(MAIN), source_name("line2")
    ('mqtt', 'mqtt.line2')
    """
    return f"mqtt.{connection}" if connection else "mqtt"


@dataclass(slots=True)
class BrokerState:
    """Used by the gateway loop only."""

    redeliveries: Redeliveries = field(default_factory=Redeliveries)
    session: Session | None = None
    """The session that the broker keeps for this gateway."""

    def begin(self, session: Session) -> None:
        """A connection has begun, or its subscriptions have changed."""
        if session.is_new:
            self.redeliveries.new_session()
        self.redeliveries.confirmed(session.cut_off)
        self.session = session

    def snapshot(self) -> dict[str, Any]:
        """The state that the next run needs."""
        session = None if self.session is None else [self.session.name, self.session.granted]
        newest, older = self.redeliveries.snapshot()
        retained = self.redeliveries.retained
        known = {"redeliveries": newest, "redeliveries_older": older, "retained": retained}
        return {**known, "session": session}


class BrokerStates:
    """The states of all connections, by name. Used by the gateway loop only."""

    def __init__(self) -> None:
        self.all = defaultdict(BrokerState, {MAIN: BrokerState()})
        self._by_source = {source_name(MAIN): MAIN}

    def add(self, connection: str) -> str:
        """Make a connection known; the name of its source."""
        self[connection]
        self._by_source[source_name(connection)] = connection
        return source_name(connection)

    def __getitem__(self, connection: str) -> BrokerState:
        return self.all[connection]

    def of_source(self, name: str) -> tuple[str, BrokerState | None]:
        """The connection of a source, and its state; for a source that is no broker, MAIN and None."""
        connection = self._by_source.get(name)
        return (MAIN, None) if connection is None else (connection, self.all[connection])

    @property
    def recognised(self) -> int:
        """Messages that brokers have sent again."""
        return sum(state.redeliveries.recognised for state in self.all.values())

    def snapshot(self) -> dict[str, Any]:
        """The state that the next run needs."""
        return {name: state.snapshot() for name, state in self.all.items()}

    def restore(self, saved: Mapping[str, Mapping[str, Any]]) -> None:
        """Restore a `snapshot`."""
        for name, state in saved.items():
            session = state.get("session")
            self.all[name] = BrokerState(
                Redeliveries(
                    state["redeliveries"], state.get("redeliveries_older", b""), state.get("retained")
                ),
                None if session is None else Session(session[0], session[1], connection=name),
            )
