"""A gateway on a simulated clock: real engine, rules, sinks, spool and journal; a source
that the test drives."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cloud_sync.records import ARCHIVE
from cloud_sync.spool import Spool, SpoolSettings
from edge.base.poller import Poller
from edge.clock import Clock, SimulatedClock, SystemClock
from edge.config import JournalConfig
from edge.config.brokers import BrokerNames
from edge.delivery.actions import ActionBuilder
from edge.delivery.dead_letters import DeadLetters
from edge.delivery.effects import CommitEffects
from edge.delivery.outbox import Outbox
from edge.delivery.spools import Spools
from edge.deploy.connections import Brokers
from edge.deploy.manager import Manager
from edge.deploy.reading.rule_files import RuleFiles
from edge.deploy.recover.recovery import Recovery, open_journal
from edge.deploy.stream_sources import StreamSources
from edge.gateway import Gateway, LoopLimits
from edge.intake.backlog import Arrival
from edge.intake.queue import Intake
from edge.intake.sources.base import OnBad, OnBatch
from edge.intake.sources.http_push_server import PushServers
from edge.intake.sources.registry import Configured, SourceEnvironment
from edge.plugins.sink_kinds import register_sinks
from rules.secrets import Secrets
from sinks import Environment, MemoryBus
from sql import Catalog, Engine
from sql.algebra.row_blocks import RowBlocks

STREAM = "streams:\n  - 'CREATE STREAM m () WITH (DATASOURCE=\"plant/#\")'\n"


def rule(rule_id: str, sql: str, action: str = "{nop: {}}", more: str = "") -> str:
    """The text of a file with one rule."""
    return f"rules:\n  - id: {rule_id}\n    sql: {sql}\n    actions: [{action}]\n{more}"


class Source:
    """A source that delivers what the test tells it to, and remembers what was acknowledged."""

    def __init__(self) -> None:
        self.acknowledged: list[int] = []
        self.paused = False
        self.token = 0
        self.stats: dict[str, int] = {"connected": 1, "epoch": 1}

    def start(self, on_batch: OnBatch, on_bad: OnBad | None = None) -> None:
        self.on_batch = on_batch

    def acknowledge(self, tokens: Iterable[int]) -> None:
        self.acknowledged += tokens

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False

    def stop(self, timeout_ms: int) -> bool:
        return True

    def send(self, *payloads: Any, topic: str = "plant/x", qos: int = 1) -> None:
        """Deliver JSON values (or bytes as they are) as one batch."""
        batch = []
        for payload in payloads:
            self.token += 1
            body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
            batch.append((topic, body, self.token if qos else None, qos << 1))
        self.on_batch(batch)


def plain(part: Any) -> Any:
    """A part of a state, with the rows that it holds in blocks as lists."""
    if isinstance(part, RowBlocks):
        return part.plain()
    if isinstance(part, dict):
        return {name: plain(value) for name, value in part.items()}
    return part


class Sleepless(Poller):
    """A poller for a clock that stands still: it notes how long it would have gathered, and returns."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self.gathered: list[int] = []

    def wait(self, timeout_ms: int | None, gather_until_ms: int = 0) -> None:
        self.gathered.append(max(0, gather_until_ms - self._clock.monotonic_ms()))


class World:
    """Everything of a daemon except its process, put together anew by `restart`."""

    def __init__(
        self,
        folder: Path,
        *,
        spool_bytes_max: int = 10_000_000,
        journal: dict[str, Any] | None = None,
        grace_ms: int = 0,
        **limits: int,
    ) -> None:
        register_sinks()
        self.folder = folder
        self.rules = folder / "rules"
        self.rules.mkdir(exist_ok=True)
        self.clock = SimulatedClock()
        self.limits = LoopLimits(**limits)
        self.grace_ms = grace_ms
        self.sections: dict[str, dict[str, dict[str, Any]]] = {}
        self.broker_names: frozenset[str] = frozenset()
        """Further connections to brokers; a test adds their sources."""
        (folder / "input").mkdir(exist_ok=True)
        self.spool_settings = SpoolSettings(bytes_max=spool_bytes_max, reserve_bytes=0, group_wait_ms=0)
        self.config = JournalConfig(sync_interval_ms=0, **(journal or {}))
        self.build()

    def build(self) -> None:
        self.letters = DeadLetters(self.folder / "dead")
        self.spool = Spool(self.folder / "spool.db", "gw", self.spool_settings)
        self.outbox = Outbox(self.letters, rows_max=1_000)
        self.poller = Sleepless(self.clock)
        self.intake: Intake[Arrival] = Intake(self.poller)
        self.engine = Engine(Catalog())
        self.gateway = Gateway(self.engine, self.clock, self.intake, self.outbox, self.letters, self.limits)
        bus = MemoryBus()
        environment = Environment(
            self.clock, random.Random(1), self.folder, self.letters, bus, self.outbox.on_done
        )
        self.spools = Spools(
            self.spool, lambda: Spool(self.folder / "archive.db", "gw", self.spool_settings, ARCHIVE)
        )
        builder = ActionBuilder(environment, self.spools, self.clock, self.letters, self.outbox)
        self.push = PushServers(("127.0.0.1", 0), None, 1_000, 10)
        configured = Configured(self.sections, brokers=BrokerNames(self.broker_names))
        sources = StreamSources(
            SourceEnvironment(
                SystemClock(),
                self.folder / "input",
                self.folder / "positions",
                self.push,
                configured,
            )
        )
        self.manager = Manager(
            self.gateway,
            builder,
            bus,
            Brokers(),
            payload_bytes_max=1_000,
            grace_ms=self.grace_ms,
            sources=sources,
            configured=configured,
        )
        self.files = RuleFiles(self.rules, "UTC", Secrets())
        self.recovery = Recovery(self.gateway, self.manager, self.files, self.letters)
        effects = CommitEffects(self.spools, self.clock, self.letters, self.recovery.state)
        self.commits = open_journal(
            self.recovery, self.folder, self.clock, self.config, effects, spool=self.spool
        )
        self.gateway.commits = self.commits
        self.reload()
        self.outbox.resume()
        self.source = Source()
        self.gateway.sources.add("mqtt", self.source)

    def write(self, name: str, text: str) -> None:
        (self.rules / name).write_text(text, "utf-8")

    def reload(self) -> None:
        self.manager.reload(self.files.read())

    def state(self) -> dict[str, Any]:
        """The state that a snapshot holds, with all rows as lists."""
        return plain(self.recovery.state())

    def crash(self) -> None:
        """Lose everything that is not on disk, and start again."""
        self.spool._store.db.rollback()
        self.close()
        self.build()

    def spooled(self) -> list[dict[str, Any]]:
        """The committed rows that wait for upload, in order."""
        oldest = self.spool.outgoing.oldest()
        if oldest is None:
            return []
        return [
            json.loads(row.body)
            for row in self.spool.outgoing.take(oldest.rule, oldest.date, 10_000, 10**9, schema=oldest.schema)
        ]

    def close(self) -> None:
        self.gateway.sources.stop(1_000)
        self.commits.close()
        self.spools.close()
        self.letters.close()
