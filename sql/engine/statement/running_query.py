"""The counters, the errors and the emissions of running queries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sql.algebra.event import Event
from sql.emission import Emission, Row, singles
from sql.errors import CorruptState
from sql.plan.logical import Plan
from sql.rows import as_dict

SNAPSHOT_VERSION = 2
"""The version of stored states; states of another version are not restored."""


class RunningQuery:
    """Counters, errors and emissions of one query."""

    def __init__(self, name: str, plan: Plan, now_ms: int) -> None:
        self.name = name
        self.plan = plan
        self.now_ms = now_ms
        self.out: list[Emission] = []
        self.made: list[Row] = []
        """The rows that the compiled loop made of the present events, an emission each."""
        self.errors: list[Emission] = []
        self.counts = {"events_in": 0, "rows_out": 0, "errors": 0}
        self.seq = 0

    def new_event(self, row: object, time_ms: int) -> Event:
        """An event with the next number."""
        self.seq += 1
        return Event(row, time_ms, self.seq)

    # --- emissions ------------------------------------------------------------------------------------------

    def take(self) -> list[Emission]:
        """The emissions since the last call, errors last."""
        out, self.out = self.out, []
        if self.made:
            out.append(singles(self.name, self.now_ms, self.made))
            self.made = []
        self.counts["rows_out"] += sum([len(part.inserted) for part in out if part.kind == "rows"])
        if self.errors:
            out += self.errors
            self.errors = []
        return out

    def unseen(self, emissions: list[Emission]) -> list[Emission]:
        """Leave out results that come too late (`catchUp: skip`), and count them as
        skipped; errors remain."""
        skipped = sum(len(emission.inserted) for emission in emissions if emission.kind == "rows")
        self.counts["rows_out"] -= skipped
        self.counts["rows_skipped"] = self.counts.get("rows_skipped", 0) + skipped
        return [emission for emission in emissions if emission.kind != "rows"]

    # --- errors ---------------------------------------------------------------------------------------------

    def error_of(self, row: object, why: str, at_ms: int) -> Emission:
        """Count an error; its emission."""
        self.counts["errors"] += 1
        return Emission(self.name, at_ms, "error", [plain(row)], (), why)

    def tell(self, row: object, why: object) -> None:
        """An event could not be evaluated: counted, and an emission of its own behind the rows."""
        self.errors.append(self.error_of(row, str(why), self.now_ms))

    def reject(self, row: object, why: str, now_ms: int) -> list[Emission]:
        """An event was refused before it came here: counted, and an emission of its own."""
        self.counts["events_in"] += 1
        return [self.error_of(row, why, now_ms)]

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read the content, which changes nothing: its errors were reported when the events came."""
        told, counted = len(self.errors), self.counts["errors"]
        yield
        del self.errors[told:]
        self.counts["errors"] = counted

    # --- state ----------------------------------------------------------------------------------------------

    def head(self) -> dict[str, Any]:
        """The part of a snapshot that all queries have."""
        return {
            "version": SNAPSHOT_VERSION,
            "fingerprint": self.plan.fingerprint,
            "now": self.now_ms,
            "counts": dict(self.counts),
        }

    def restore_head(self, snapshot: dict[str, Any]) -> None:
        """Put that part back; CorruptState if the snapshot is none of this query."""
        if snapshot.get("version") != SNAPSHOT_VERSION:
            raise CorruptState(f"snapshot version {snapshot.get('version')!r} is not {SNAPSHOT_VERSION}")
        if snapshot.get("fingerprint") != self.plan.fingerprint:
            raise CorruptState("the snapshot is of another plan")
        self.now_ms = snapshot["now"]
        self.counts |= snapshot["counts"]


def plain(row: object) -> dict[str, Any]:
    """A row, or the sides of a joined row, as a dict for an error's emission."""
    if isinstance(row, tuple):
        present = [side for side in row if side is not None]
        if len(present) == 1:
            return plain(present[0])
        return {str(i): plain(side) for i, side in enumerate(row) if side is not None}
    if isinstance(row, list):
        return {str(i): plain(item) for i, item in enumerate(row)}
    return {} if row is None else dict(as_dict(row))
