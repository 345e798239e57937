"""The tree of /status: the whole state of a gateway as JSON values, read in its loop."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from edge.base.logs import redact
from edge.base.memory import resident_bytes
from edge.base.version import build, version
from edge.monitor.readiness import not_ready

if TYPE_CHECKING:
    from cloud_sync.spool import Spool
    from edge.monitor.figures import Figures
    from edge.monitor.flight.ask import Why
    from edge.monitor.observed import Observed
    from sinks.delivery import Stats

PARTITIONS_SHOWN = 1_000
"""Live partitions of a context that /status lists, the oldest first."""


class StatusTree:
    """The tree and its branches."""

    def __init__(self, daemon: Observed, figures: Figures, why: Why) -> None:
        self._daemon = daemon
        self._figures = figures
        self._why = why

    def whole(self) -> dict[str, Any]:
        """The tree, with an empty place for each rule and context that runs (`of_rules`, `of_contexts`)."""
        self._figures.reconcile()
        return {
            **self._process(),
            **self._rules_and_files(),
            "intake": self._intake(),
            "payloads": {name: list(texts.values()) for name, texts in self._lessons().items()},
            **self._stores(),
        }

    def _process(self) -> dict[str, Any]:
        daemon = self._daemon
        return {
            "gateway": daemon.config.gateway.id,
            "version": version(),
            "build": build(),
            "monotonic_ms": daemon.clock.monotonic_ms(),
            "now_ms": daemon.clock.now_ms(),
            "up_s": (daemon.clock.monotonic_ms() - daemon.started_ms) // 1000,
            "resident_bytes": resident_bytes(),
            "clock": {
                "steps": daemon.clock.steps,
                "sane": daemon.clock.is_sane(),
                "ahead_ms": daemon.clock.ahead_ms,
            },
            "ready": not_ready(daemon),
        }

    def of_rules(self, names: Iterable[str]) -> dict[str, dict[str, Any]]:
        """The branches of rules, those of them that run."""
        counted = self._figures.counters(names)
        return {name: self._rule(name, counters) for name, counters in counted.items()}

    def _rules_and_files(self) -> dict[str, Any]:
        daemon, manager = self._daemon, self._daemon.manager
        now_ms = daemon.clock.now_ms()
        return {
            "rules": {name: {} for name in manager.running if name not in manager.grace.leaving},
            "tables": manager.tables.counters(),
            "lookups": self._figures.lookups(),
            "leaving": {name: max(0, until_ms - now_ms) for name, until_ms in manager.grace.leaving.items()},
            "contexts": {name: {} for name in daemon.engine.contexts},
            "stopped": list(manager.stopped),
            "asleep": dict(manager.asleep),
            "dropped_held": daemon.outbox.dropped_held,
            "failed": dict(manager.rules.failed),
            "defects": self._figures.defects(),
            "files": self._files(),
        }

    def _intake(self) -> dict[str, Any]:
        gateway = self._daemon.gateway
        return {
            "received": dict(gateway.streams.received),
            "rejected": dict(gateway.refusals.rejected),
            "unrouted": gateway.streams.unrouted,
            "redelivered": gateway.brokers.recognised,
            "repeated_keys": gateway.message_keys.recognised,
            "unacknowledged": self._daemon.commits.acknowledgements.messages,
            "paused": gateway.sources.paused,
            "pauses": gateway.sources.pauses,
            "dropped": gateway.backlog.dropped,
        }

    def _stores(self) -> dict[str, Any]:
        daemon = self._daemon
        return {
            "sources": {name: source.stats for name, source in daemon.gateway.sources.items()},
            "failed_sources": dict(daemon.manager.failed_sources),
            "journal": self._figures.journal(),
            "listeners": len(daemon.gateway.taps.listeners),
            "dead_letters": {"written": daemon.dead_letters.written, "lost": daemon.dead_letters.lost},
            "spool": self._spool(daemon.spool),
            "archive": [self._spool(spool) for spool in daemon.cloud.spools.opened[1:]],
        }

    def _lessons(self) -> dict[str, dict[str, str]]:
        """By stream: the deviations of its payloads from the declaration."""
        looked = self._daemon.gateway.streams.lessons
        return {name: texts for name, lessons in looked.items() if (texts := lessons.texts())}

    def _rule(self, rule_id: str, counters: Mapping[str, int]) -> dict[str, Any]:
        daemon = self._daemon
        running = daemon.manager.running[rule_id]
        return {
            "state": "running",
            "began": running.state,
            "differs": list(running.differs),
            "hash": running.hash,
            "file": running.rule.path,
            "streams": list(running.rule.plan.streams),
            "gathers_with": daemon.engine.roster.shares_with(rule_id),
            "counters": counters,
            "last_fired_ms": daemon.outbox.fired.get(rule_id),
            "expect": self._figures.expectations(rule_id),
            "why": self._why.last.get(rule_id),
            "memory_bytes": self._figures.memory.known.get(rule_id, 0),
            "state_bytes": self._figures.state_bytes(rule_id),
            "actions": [
                {"role": action.role, "sink": action.delivery.name, **_delivery(action.stats())}
                for action in daemon.outbox.actions(rule_id)
            ],
        }

    def of_contexts(self, names: Iterable[str]) -> dict[str, dict[str, Any]]:
        """The branches of contexts: their rules, their counters, and the oldest of their live partitions."""
        contexts, memory = self._daemon.engine.contexts, self._figures.memory
        return {
            name: {
                "rules": list(host.members),
                "counters": host.counters(),
                "max_partitions": host.context.max_partitions,
                "memory_bytes": memory.of_context(host),
                "bytes_per_partition": memory.known.get(host.name) or None,
                "partitions": list(islice(host.partitions(), PARTITIONS_SHOWN)),
            }
            for name in names
            if (host := contexts.get(name)) is not None
        }

    def _files(self) -> list[dict[str, Any]]:
        manager = self._daemon.manager
        problems: dict[str, list[str]] = defaultdict(list)
        for problem in manager.problems:
            problems[problem.path].append(problem.render())
        rules: dict[str, list[str]] = defaultdict(list)
        for rule_id, running in manager.running.items():
            rules[running.rule.path].append(rule_id)
        return [{"file": name, "problems": problems[name], "rules": rules[name]} for name in manager.files]

    def _spool(self, spool: Spool) -> dict[str, Any]:
        stats = spool.stats()
        found: dict[str, Any] = {
            "rows": stats.rows,
            "bytes": stats.bytes,
            "set_aside": stats.set_aside,
            **stats.counters,
        }
        if (uploader := self._daemon.cloud.uploader(spool)) is not None:
            uploads = uploader.stats
            found |= {
                "files": uploads.files,
                "retries": uploads.retries,
                "divided": uploads.divided,
                "last_error": uploads.last_error,
            }
        return found


def _delivery(stats: Stats) -> dict[str, Any]:
    return {
        "state": stats.state,
        "sent": stats.sent,
        "retried": stats.retried,
        "rejected": stats.rejected,
        "dropped": stats.dropped,
        "queued": stats.queued,
        "last_error": redact(stats.last_error),
    }
