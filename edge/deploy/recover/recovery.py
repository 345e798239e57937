"""Recovery: the newest snapshot, then every record of the journal since, in order and
with the recorded times.

The state of the gateway is a function of its inputs. `state` is what a snapshot holds of it; `run` brings it
back. What rows of the replay mean to sinks is decided by their numbers, see `edge.delivery.outbox`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from cloud_sync.spool import Spool
from edge.clock import Clock
from edge.config import JournalConfig
from edge.delivery.dead_letters import DeadLetters
from edge.deploy.lookup_stores import change_policies, take_answers
from edge.deploy.manager import Manager
from edge.deploy.reading.wanted import Wanted
from edge.deploy.recover.lots import Lots
from edge.deploy.recover.upgrade import old_snapshot, remove_old
from edge.deploy.tables import declare_streams
from edge.gateway import Gateway
from edge.intake.broker_state import MAIN
from edge.journal.commits import Commits, Effects
from edge.journal.reader import TORN_NOTE, FramedRecord, JournalPass, read, segments
from edge.journal.record import Answers, Batch, Deployment, Policies, Receipts, Removal, Session, Tick, Timed
from edge.journal.snapshots import STATE_VERSION, Snapshot, Snapshots
from edge.journal.writer import Journal
from rules.compiled import CompiledRule
from sql.record import replace

log = logging.getLogger("penstock.journal")

PROBLEMS_SHOWN = 5
"""The problems of a journal that one line of the log quotes."""

DAMAGE_REMEDY = "what it held is lost; see penstock journal verify, and check the disk"


@dataclass(slots=True)
class Recovered:
    """The result of a recovery: the end of the journal, and the amounts replayed and damaged."""

    end: int = 0
    records: int = 0
    messages: int = 0
    bytes: int = 0
    ms: int = 0
    damaged: int = 0
    damaged_bytes: int = 0


class Files(Protocol):
    """The reader of rule files, as a recovery needs it."""

    def read(self) -> Wanted: ...
    def of(self, texts: Mapping[str, str], kept: Iterable[str] = ()) -> Wanted: ...
    def remember(self, texts: Mapping[str, str]) -> None: ...


class Recovery:
    """Brings the gateway back to where an earlier run ended. Used by the gateway loop only."""

    def __init__(self, gateway: Gateway, manager: Manager, files: Files, dead_letters: DeadLetters) -> None:
        self.found = Recovered()
        self.wake = gateway.intake.wake
        """Ends the sleep of the gateway's loop."""
        self._gateway = gateway
        self._manager = manager
        self._files = files
        self._dead_letters = dead_letters
        self._lots = Lots(gateway, manager.memory_streams)
        self._at_ms = 0

    def state(self) -> dict[str, Any]:
        """The whole state, as plain data."""
        gateway, manager = self._gateway, self._manager
        return {
            "version": STATE_VERSION,
            "at_ms": gateway.clock.now_ms(),
            "texts": manager.texts,
            "kept": sorted(manager.kept),
            "rules": manager.rules.states(),
            "tables": manager.tables.states(),
            "variables": gateway.engine.catalog.variables_snapshot(),
            "outbox": gateway.outbox.journaled.snapshot(),
            "brokers": gateway.brokers.snapshot(),
            "message_keys": gateway.message_keys.snapshot(),
            "leaving": manager.grace.leaving,
            "left": manager.grace.left,
            "going_on": _by_texts(manager.going_on),
        }

    def run(self, snapshot: Snapshot | None, directory: Path) -> Recovered:
        """Restore the snapshot and replay the journal behind it."""
        gateway = self._gateway
        began_ms = gateway.clock.monotonic_ms()
        gateway.outbox.is_replaying = self._dead_letters.is_muted = True
        try:
            if snapshot is not None:
                self.restore(snapshot.state)
            reading = JournalPass()
            start = 0 if snapshot is None else snapshot.position
            for entry in read(directory, start, reading):
                self.found.records += 1
                self.found.messages += len(entry.messages)
                self._replay(entry)
            self._end_lot()
        finally:
            self._dead_letters.is_muted = False
        gateway.clock.go_on_from(self._at_ms)
        self._manager.restored()
        self._files.remember(self._manager.texts)
        self._log_replay(reading, start, gateway.clock.monotonic_ms() - began_ms)
        return self.found

    def old_snapshot(self, spool: Spool, data: Path) -> Snapshot | None:
        """The state of a version of penstock without a journal; None if there is none."""
        return old_snapshot(spool, data, lambda: self._files.read().texts, self._gateway.clock.now_ms())

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the state of a snapshot."""
        self._at_ms = state["at_ms"]
        wanted = self._files.of(state["texts"], state["kept"])
        left = self._left(state["texts"], state.get("left", {}))
        for texts, rules in state.get("going_on", ()):
            wanted, going_on = self._earlier(wanted, texts, rules)
            left |= going_on
        self._manager.restore(wanted, state, left, self._at_ms)
        # Snapshots of versions that read one broker have the parts of its state by themselves.
        self._gateway.brokers.restore(state.get("brokers", {MAIN: state}))
        self._gateway.message_keys.restore(state.get("message_keys", {}))
        self._gateway.outbox.journaled.restore(state["outbox"])
        self._manager.restore_leaving(state.get("leaving", {}), state.get("left", {}))

    def _earlier(
        self, wanted: Wanted, texts: dict[str, str], rules: Iterable[str]
    ) -> tuple[Wanted, dict[str, CompiledRule]]:
        """The wanted state with the tables of the rules in these texts that go on, and those rules.

        Their streams are made known to the engine, as they were then.
        """
        then = self._files.of(texts)
        declare_streams(self._gateway.engine, then.catalog)
        tables = {name: table for name, table in then.tables.items() if table.path in wanted.kept}
        found = {rule_id: then.rules[rule_id] for rule_id in rules if rule_id in then.rules}
        self._manager.going_on.update(dict.fromkeys(found, texts))
        return replace(wanted, tables={**tables, **wanted.tables}), found

    def _left(self, texts: Mapping[str, str], left: Mapping[str, tuple[str, str]]) -> dict[str, CompiledRule]:
        """Rules that no file had any more, from the texts that had them."""
        found = {}
        for rule_id, (name, text) in left.items():
            rule = self._files.of({**texts, name: text}).rules.get(rule_id)
            if rule is not None:
                found[rule_id] = rule
        return found

    def apply(self, entry: FramedRecord) -> None:
        """Apply one record again, at once."""
        self._replay(entry)
        self._end_lot()

    def _replay(self, entry: FramedRecord) -> None:
        """Apply one record again; a batch may wait for those that follow it."""
        record = entry.record
        if isinstance(record, Timed):
            self._at_ms = record.at_ms
        match record:
            case Batch():
                self._note(record, entry)
                self._lots.take(record, entry)
            case Receipts():
                self._lots.take_receipts(record)
            case _:
                self._lots.end()
                self._take(record)
        self._forget_requests()

    def _end_lot(self) -> None:
        self._lots.end()
        self._forget_requests()

    def _note(self, batch: Batch, entry: FramedRecord) -> None:
        """Messages that were taken in: by what their repetitions are known."""
        gateway = self._gateway
        gateway.brokers[batch.connection].redeliveries.note(entry.messages)
        gateway.message_keys.note(entry.messages, gateway.streams.router(batch.connection).match)

    def _take(self, record: Tick | Deployment | Removal | Answers | Policies | Session) -> None:
        gateway = self._gateway
        match record:
            case Tick():
                gateway.tick(record.at_ms)
            case Deployment():
                self._manager.apply(self._files.of(record.texts, record.kept), record.at_ms, record.numbers)
            case Removal():
                self._manager.remove(record.rules)
            case Answers():
                take_answers(gateway, record)
            case Policies():
                change_policies(gateway.engine, record)
            case Session():
                gateway.brokers[record.connection].begin(record)

    def _forget_requests(self) -> None:
        """Events that still wait at the end are requested then."""
        if self._gateway.engine.catalog.requests:
            self._gateway.engine.catalog.requests.clear()

    def _log_replay(self, reading: JournalPass, start: int, elapsed_ms: int) -> None:
        found = self.found
        found.end, found.bytes, found.ms = reading.end, reading.end - start, elapsed_ms
        found.damaged, found.damaged_bytes = (
            len(reading.damage),
            sum(damage.bytes for damage in reading.damage),
        )
        if problems := reading.problems():
            log.error("journal.damaged", extra={"error": _some(problems), "note": DAMAGE_REMEDY})
        if reading.torn_bytes:
            log.warning("journal.torn", extra={"bytes": reading.torn_bytes, "note": TORN_NOTE})
        if found.records or reading.torn_bytes:
            log.info(
                "journal.replayed",
                extra={
                    "records": found.records,
                    "messages": found.messages,
                    "bytes": found.bytes,
                    "torn": reading.torn_bytes,
                    "ms": elapsed_ms,
                },
            )


def _some(problems: list[str]) -> str:
    more = len(problems) - PROBLEMS_SHOWN
    return "; ".join(problems[:PROBLEMS_SHOWN]) + (f"; and {more} more" if more > 0 else "")


def open_journal(
    recovery: Recovery, data: Path, clock: Clock, config: JournalConfig, effects: Effects, *, spool: Spool
) -> Commits:
    """Recover, and go on writing behind the last record found; the state of a version before the
    journal is taken over."""
    snapshots = Snapshots(data / "snapshots", clock)
    snapshot, old = snapshots.load(), None
    if snapshot is None and not segments(data / "journal"):
        snapshot = old = recovery.old_snapshot(spool, data)
    found = recovery.run(snapshot, data / "journal")
    journal = Journal(
        data / "journal", found.end, segment_bytes=config.segment_bytes, compression=config.compression
    )
    commits = Commits(journal, snapshots, clock, config, effects, recovery.wake)
    if old is not None and commits.snapshot():
        remove_old(spool, data, clock.now_ms())
    return commits


def _by_texts(going_on: Mapping[str, dict[str, str]]) -> list[tuple[dict[str, str], list[str]]]:
    """Rules that were defined by the same texts together, because the texts may be large."""
    found: dict[int, tuple[dict[str, str], list[str]]] = {}
    for rule_id, texts in going_on.items():
        found.setdefault(id(texts), (texts, []))[1].append(rule_id)
    return list(found.values())
