"""What statements ask of the step loop between them: who has not been told of what,
and where their rows go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Loop:
    """Where there is no engine: every change is known, nobody listens and nothing moves."""

    def unseen(self, statement: str, relation: str) -> Any:
        """The changes of a named window that a statement has not been told of yet;
        None where it knows all."""
        return None

    def publish(self, relation: Any, delta: Any) -> None:
        """A named window has changed: its consumers are to be told."""

    def forward(self, stream: str, rows: Sequence[Any], statement: str) -> None:
        """A statement inserts rows into a stream or a relation: they are queued."""
