"""Figures that both /status and /metrics show, each computed in one place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from edge.monitor.footprint import Memory

if TYPE_CHECKING:
    from edge.monitor.observed import Observed


class Figures:
    """Figures of a running gateway, read in its loop."""

    def __init__(self, daemon: Observed) -> None:
        self._daemon = daemon
        self.memory = Memory(daemon.engine)

    def defects(self) -> int:
        """Errors that no rule caused by itself: of the gateway and of the engine."""
        return self._daemon.gateway.refusals.defects + self._daemon.engine.dispatch.defects

    def reconcile(self) -> None:
        """Bring the counters of all rules up to date, once for each request."""
        self._daemon.engine.roster.reconcile()

    def counters(self, names: Iterable[str]) -> dict[str, dict[str, int]]:
        """The engine's counters of rules, of those that run, as of the last `reconcile`."""
        engine, running = self._daemon.engine, self._daemon.manager.running
        return {name: engine.queries[name].counters() for name in names if name in running}

    def state_bytes(self, rule_id: str) -> int:
        """The bytes of the rule's state in the last snapshot. To encode it anew would hold up the rules."""
        return self._daemon.commits.snapshots.sizes.get(rule_id, 0)

    def expectations(self, rule_id: str) -> list[dict[str, Any]]:
        """The checks of a rule, with the rows that broke them."""
        outbox = self._daemon.outbox
        return outbox.expectations.told(rule_id, outbox.fired.get(rule_id), self._daemon.clock.now_ms())

    def lookups(self) -> dict[str, Any]:
        """The tables of stores with their counts, and the health of their stores."""
        sources = self._daemon.manager.sources
        health = {} if sources is None or sources.stores is None else sources.stores.health()
        asked = self._daemon.manager.tables.asked()
        return {name: {**counts, **health.get(name, {})} for name, counts in asked.items()}

    def journal(self) -> dict[str, Any]:
        """The journal, its commits and snapshots, and what the last start recovered from it."""
        daemon = self._daemon
        commits, found = daemon.commits, daemon.recovery.found
        journal, snapshots = commits.journal, commits.snapshots
        written_bytes = journal.written_bytes + snapshots.written_bytes
        messages = sum(daemon.gateway.streams.received.values())
        age_ms = None if snapshots.last_at_ms is None else daemon.clock.monotonic_ms() - snapshots.last_at_ms
        return {
            "position": journal.position, "is_written": journal.is_written,
            "commits": commits.made, "syncs": journal.syncs,
            "failures": commits.failures, "last_ms": commits.last_ms, "problem": commits.problem,
            "written_bytes": written_bytes,
            "bytes_per_message": round(written_bytes / max(1, messages), 1),
            "bytes_per_day": commits.wear.bytes_per_day, "wears_too_much": commits.wear.is_too_much,
            "replay_bytes": journal.position - commits.snapshot_at,
            "snapshot": {
                "made": snapshots.made, "failures": snapshots.failures, "bytes": snapshots.last_bytes,
                "last_ms": snapshots.last_ms, "age_ms": age_ms,
            },
            "recovered": {
                "records": found.records, "messages": found.messages, "bytes": found.bytes, "ms": found.ms,
                "damaged": found.damaged, "damaged_bytes": found.damaged_bytes,
            },
        }  # fmt: skip
