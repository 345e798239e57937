"""The running gateway as the monitor sees it: the parts whose state it reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from cloud_sync.spool import Spool
    from edge.clock import Clock
    from edge.config import Config
    from edge.delivery.cloud_path import CloudPath
    from edge.delivery.dead_letters import DeadLetters
    from edge.delivery.outbox import Outbox
    from edge.deploy.connections import Brokers
    from edge.deploy.manager import Manager
    from edge.deploy.reading.reader import RuleReader
    from edge.deploy.recover.recovery import Recovery
    from edge.gateway import Gateway
    from edge.intake.backlog import Arrival
    from edge.intake.queue import Intake
    from edge.intake.sources.registry import Configured
    from edge.journal.commits import Commits
    from sql import Engine

Result = TypeVar("Result")


class Observed(Protocol):
    """A gateway. Its parts belong to the loop, except where they say that they may be read on any thread."""

    config: Config
    configured: Configured
    clock: Clock
    started_ms: int
    is_recovering: bool
    engine: Engine
    gateway: Gateway
    manager: Manager
    rule_files: RuleReader
    intake: Intake[Arrival]
    outbox: Outbox
    commits: Commits
    recovery: Recovery
    brokers: Brokers
    dead_letters: DeadLetters
    cloud: CloudPath
    spool: Spool

    def ask(self, question: Callable[[], Result]) -> Result:
        """The answer of the loop to a question from any thread. Raises TimeoutError, whose text says
        that the loop did not answer."""
