"""A private gateway that goes through the journal again: the same engine, without broker, sinks and spool.

Memory topics between rules work, for such chains are part of what the engine computes. Emissions carry the
numbers of their rows, as in the running gateway.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from edge.clock import SimulatedClock
from edge.config.brokers import BrokerNames
from edge.delivery.assigned import AssignedAction
from edge.delivery.dead_letters import DeadLetters
from edge.delivery.inline_action import MEMORY, memory_action
from edge.delivery.outbox import Outbox
from edge.deploy.connections import Brokers
from edge.deploy.manager import Manager
from edge.deploy.reading.rule_files import RuleFiles
from edge.deploy.recover.recovery import Recovery
from edge.gateway import Gateway, LoopLimits
from edge.intake.origins import Origins
from edge.intake.queue import Intake
from edge.intake.sources.registry import Configured
from edge.journal import pages
from edge.journal.reader import FramedRecord, JournalPass, first_position, read
from edge.journal.snapshots import Snapshot, snapshot_files
from edge.monitor.flight.question import Settings
from rules.compiled import CompiledRule
from rules.secrets import Secrets
from sinks import Environment, MemoryBus, SinkSettings
from sql import Catalog, Emission, Engine

OnEmission = Callable[[Emission, int], None]
"""Takes each emission with the number of its first row."""


class _Listening(Outbox):
    """Numbers emissions, and hands them to a listener; of the actions only memory actions get them."""

    def __init__(self, dead_letters: DeadLetters, on_emission: OnEmission) -> None:
        super().__init__(dead_letters, rows_max=1_000_000)
        self._on_emission = on_emission

    def hand_over(self, emissions: Iterable[Emission], origins: Origins | None = None) -> None:
        emissions = list(emissions)
        for emission in emissions:
            self._on_emission(emission, self.numbers.get(emission.rule, 0) + 1)
            super().hand_over([emission], origins)


class _MemoryOnly:
    """Stands in for the builder of actions: rules get their memory actions and no others."""

    def __init__(self, environment: Environment, dead_letters: DeadLetters, outbox: Outbox) -> None:
        self._environment = environment
        self._dead_letters = dead_letters
        self._outbox = outbox

    def actions(self, rule: CompiledRule, before: Iterable[AssignedAction]) -> list[AssignedAction]:
        """The memory actions of a rule."""
        return [
            self._action(rule.id, role, position, written.settings)
            for role, position, written in rule.placed_actions
            if written.sink == MEMORY
        ]

    def _action(self, rule_id: str, role: str, position: int, settings: object) -> AssignedAction:
        assert isinstance(settings, SinkSettings)
        on_done = self._outbox.on_done_in_loop
        delivery = memory_action(settings, rule_id, self._environment, self._dead_letters, on_done)
        return AssignedAction(role, position, settings, delivery, is_replayed=True)

    def last_number(self, rule: CompiledRule, *, cached: bool = True) -> int:
        """0: rows are numbered from the journal."""
        return 0


class Rerun:
    """A replay of the journal of a data directory for observation; each emission goes to `on_emission`."""

    def __init__(self, settings: Settings, on_emission: OnEmission) -> None:
        data = Path(settings.data)
        letters = DeadLetters(data / "none")
        letters.is_muted = True
        self.directory = data
        self.letters = letters
        self.outbox = _Listening(letters, on_emission)
        self.engine = Engine(Catalog())
        clock, bus = SimulatedClock(), MemoryBus()
        self.gateway = Gateway(self.engine, clock, Intake(), self.outbox, letters, LoopLimits())
        builder = _MemoryOnly(Environment(clock, random.Random(), data, letters, bus), letters, self.outbox)
        self.manager = Manager(
            self.gateway,
            builder,
            bus,
            Brokers(),
            payload_bytes_max=settings.payload_bytes_max,
            grace_ms=settings.grace_ms,
            configured=Configured(brokers=BrokerNames(frozenset(settings.brokers))),
        )
        allow = None if settings.secrets_allow is None else frozenset(settings.secrets_allow)
        folder = None if settings.secrets_dir is None else Path(settings.secrets_dir)
        secrets = Secrets(settings.secrets_prefixes, folder, allow, frozenset(settings.secrets_reserved))
        files = RuleFiles(Path(settings.rules), settings.zone, secrets, settings.outgoing_allow)
        self._recovery = Recovery(self.gateway, self.manager, files, letters)

    def begin(self, from_ms: int) -> tuple[int, int | None]:
        """Restore the newest snapshot that is not younger than `from_ms`, else the oldest that the journal
        goes on from; its position and time. Without a snapshot the rerun begins with nothing, at the start of
        the journal."""
        first = first_position(self.directory / "journal")
        found: Snapshot | None = None
        for position, path in reversed(snapshot_files(self.directory / "snapshots")):
            if position < first:
                break
            try:
                found = Snapshot(position, pages.read(path))
            except (OSError, ValueError):
                continue
            if found.state["at_ms"] <= from_ms:
                break
        if first == 0 and (found is None or found.state["at_ms"] > from_ms):
            return 0, None
        if found is None:
            return first, None
        self._recovery.restore(found.state)
        return found.position, int(found.state["at_ms"])

    def entries(self, start: int) -> Iterator[FramedRecord]:
        """The records of the journal from a position on."""
        yield from read(self.directory / "journal", start, JournalPass())

    def apply(self, entry: FramedRecord) -> None:
        """Apply one record."""
        self._recovery.apply(entry)
