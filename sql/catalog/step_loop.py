"""The interface of the step loop for statements: pending changes of named windows, and the queue of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class StepLoop:
    """The loop without an engine: every change is known, nothing is queued."""

    def unseen(self, statement: str, relation: str) -> Any:
        """The changes of a named window that a statement has not processed yet; None if there are none."""
        return None

    def publish(self, relation: Any, delta: Any) -> None:
        """Report a change of a named window to its consumers."""

    def entered(self, relation: Any, row: Any) -> None:
        """Report a row that was inserted into a named window to the patterns that read it."""

    def forward(self, stream: str, rows: Sequence[Any], statement: str) -> None:
        """Queue the rows that a statement inserts into a stream or a relation."""
