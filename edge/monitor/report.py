"""The gateway's report about itself: the numbers of /metrics, the tree of /status, the reasons of /readyz.

The gateway loop collects everything, between two batches, and only on request.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from edge.base.logs import redact
from edge.base.memory import resident_bytes
from edge.base.version import build, version
from edge.intake.broker_state import MAIN, source_name
from edge.monitor.footprint import RuleMemory
from edge.monitor.http import ANSWER_TIMEOUT_S
from edge.monitor.metrics import Sample, render, sample
from edge.monitor.partitions import bytes_each
from sql.rows import as_dict

if TYPE_CHECKING:
    from cloud_sync.spool import Spool
    from edge.monitor.flight.ask import Why
    from edge.monitor.observed import Observed
    from sinks.delivery import Stats

COUNTERS = {
    "events_in": "penstock_rule_events_total",
    "rows_out": "penstock_rule_rows_total",
    "rows_skipped": "penstock_rule_rows_skipped_total",
    "late": "penstock_rule_late_total",
    "errors": "penstock_rule_errors_total",
    "refused_future": "penstock_rule_refused_total",
    "groups": "penstock_rule_groups",
}
"""The engine's counters of a rule, and the metric each becomes."""

PARTITIONS_SHOWN = 1_000
"""Live partitions of a context that /status lists, the oldest first."""


class Report:
    """Implements `edge.monitor.http.Reporter`."""

    def __init__(self, daemon: Observed, why: Why) -> None:
        self._daemon = daemon
        self._why = why
        self._rule_memory = RuleMemory()

    def recovering(self) -> str | None:
        """The progress of the journal's replay; None when the loop runs. May be called from any thread."""
        found = self._daemon.recovery.found if self._daemon.is_recovering else None
        return None if found is None else f"recovering: {found.messages} messages of the journal replayed"

    def ping(self) -> None:
        """Return when the loop has turned."""
        self._daemon.intake.call(lambda: None, ANSWER_TIMEOUT_S)

    def metrics_text(self) -> str:
        """Prometheus text."""
        return render(self._daemon.intake.call(lambda: list(self._samples()), ANSWER_TIMEOUT_S))

    def status(self) -> dict[str, Any]:
        """The whole state as JSON values."""
        return self._daemon.intake.call(self._status, ANSWER_TIMEOUT_S)

    def not_ready(self) -> list[str]:
        """Why the gateway is not doing all it should; empty when it is."""
        return self._daemon.intake.call(self._not_ready, ANSWER_TIMEOUT_S)

    # --- in the loop ----------------------------------------------------------------------------------------

    def _not_ready(self) -> list[str]:
        daemon = self._daemon
        reasons = []
        if not daemon.clock.is_sane():
            reasons.append(
                "clock: it has not been set since boot; windows are in the past, and uploads wait for it"
            )
        for connection, source in daemon.brokers.sources.items():
            name = source_name(connection)
            if not source.ready:
                reasons.append(f"{name}: {source.problem or 'subscriptions are not answered yet'}")
            reasons += [f"{name}: topic '{topic}' refused: {why}" for topic, why in source.refused.items()]
        if MAIN in daemon.brokers.filters and MAIN not in daemon.brokers.sources:
            reasons.append("mqtt: rules read MQTT streams, but no mqtt.server is configured")
        if daemon.rule_files.is_missing:
            reasons.append(f"{daemon.rule_files.directory}: the rule directory is gone; its rules go on")
        bad = sorted({problem.path for problem in daemon.manager.problems if problem.is_error})
        reasons += [f"{path}: has problems, see /status" for path in bad]
        reasons += [f"rule {rule_id}: {why}" for rule_id, why in daemon.manager.failed.items()]
        if daemon.commits.problem:
            reasons.append(daemon.commits.problem)
        return reasons

    def _status(self) -> dict[str, Any]:
        daemon = self._daemon
        rejected = dict(daemon.gateway.rejected)
        memory = self._memory()
        return {
            "gateway": daemon.config.gateway.id,
            "version": version(),
            "build": build(),
            "monotonic_ms": daemon.clock.monotonic_ms(),
            "now_ms": daemon.clock.now_ms(),
            "up_s": (daemon.clock.monotonic_ms() - daemon.started_ms) // 1000,
            "resident_bytes": resident_bytes(),
            "clock": {"steps": daemon.clock.steps, "sane": daemon.clock.is_sane()},
            "ready": self._not_ready(),
            "rules": {
                rule_id: self._rule(rule_id, memory)
                for rule_id in daemon.manager.running
                if rule_id not in daemon.manager.leaving
            },
            "tables": daemon.manager.tables.counters(),
            "lookups": self._lookups(),
            "leaving": {
                rule_id: max(0, until_ms - daemon.clock.now_ms())
                for rule_id, until_ms in daemon.manager.leaving.items()
            },
            "contexts": {name: self._context(name, memory) for name in daemon.engine.contexts},
            "stopped": list(daemon.manager.stopped),
            "asleep": dict(daemon.manager.asleep),
            "failed": dict(daemon.manager.failed),
            "defects": daemon.gateway.defects + daemon.engine.dispatch.defects,
            "files": self._files(),
            "intake": {
                "received": dict(daemon.gateway.streams.received),
                "rejected": rejected,
                "unrouted": daemon.gateway.streams.unrouted,
                "redelivered": daemon.gateway.brokers.recognised,
                "repeated_keys": daemon.gateway.message_keys.recognised,
                "unacknowledged": daemon.commits.unacknowledged,
                "paused": daemon.gateway.paused,
                "pauses": daemon.gateway.pauses,
                "dropped": daemon.gateway.backlog.dropped,
            },
            "payloads": {name: list(texts.values()) for name, texts in self._lessons().items()},
            "sources": {name: source.stats for name, source in daemon.gateway.sources.items()},
            "failed_sources": dict(daemon.manager.failed_sources),
            "journal": self._journal(),
            "listeners": len(daemon.gateway.taps.listeners),
            "dead_letters": {"written": daemon.dead_letters.written, "lost": daemon.dead_letters.lost},
            "spool": self._spool(daemon.spool),
            "archive": [self._spool(spool) for spool in daemon.cloud.spools.opened[1:]],
        }

    def _lessons(self) -> dict[str, dict[str, str]]:
        """By stream: the deviations of its payloads from the declaration."""
        looked = self._daemon.gateway.streams.lessons
        return {name: texts for name, lessons in looked.items() if (texts := lessons.texts())}

    def _journal(self) -> dict[str, Any]:
        daemon = self._daemon
        commits, found = daemon.commits, daemon.recovery.found
        journal, snapshots = commits.journal, commits.snapshots
        messages = sum(daemon.gateway.streams.received.values())
        age_ms = None if snapshots.last_at_ms is None else daemon.clock.monotonic_ms() - snapshots.last_at_ms
        return {
            "position": journal.position, "is_written": journal.is_written,
            "commits": commits.made, "syncs": journal.syncs,
            "failures": commits.failures, "last_ms": commits.last_ms, "problem": commits.problem,
            "written_bytes": journal.written_bytes + snapshots.written_bytes,
            "bytes_per_message": round((journal.written_bytes + snapshots.written_bytes) / max(1, messages),
                                       1),
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

    def _memory(self) -> Mapping[str, int]:
        engine, now_ms = self._daemon.engine, self._daemon.clock.monotonic_ms()
        return self._rule_memory.look(engine.queries, engine.common, now_ms)

    def _rule(self, rule_id: str, memory: Mapping[str, int]) -> dict[str, Any]:
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
            "counters": daemon.engine.counters(rule_id),
            "last_fired_ms": daemon.outbox.fired.get(rule_id),
            "expect": self._expectations(rule_id),
            "why": self._why.last.get(rule_id),
            "memory_bytes": memory.get(rule_id, 0),
            "state_bytes": self._state_bytes(rule_id),
            "actions": [
                {"role": action.role, "sink": action.delivery.name, **self._delivery(action.delivery.stats())}
                for action in daemon.outbox.actions(rule_id)
            ],
        }

    def _expectations(self, rule_id: str) -> list[dict[str, Any]]:
        """The checks of a rule, with the rows that broke them."""
        outbox = self._daemon.outbox
        return outbox.expectations.told(rule_id, outbox.fired.get(rule_id), self._daemon.clock.now_ms())

    def _context(self, name: str, memory: Mapping[str, int]) -> dict[str, Any]:
        """A context: its rules, its counters, and the oldest of its live partitions with their properties."""
        engine = self._daemon.engine
        host = engine.contexts[name]
        counters = host.counters()
        taken = sum(memory.get(rule_id, 0) for rule_id in host.members)
        return {
            "rules": list(host.members),
            "counters": counters,
            "max_partitions": host.context.max_partitions,
            "memory_bytes": taken,
            "bytes_per_partition": bytes_each(host, engine.common),
            "partitions": [_plain(row) for row in engine.partitions(name)[:PARTITIONS_SHOWN]],
        }

    def _state_bytes(self, rule_id: str) -> int:
        """The bytes of the rule's state in the last snapshot. To encode it anew would hold up the rules."""
        return self._daemon.commits.snapshots.sizes.get(rule_id, 0)

    @staticmethod
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

    def _files(self) -> list[dict[str, Any]]:
        manager = self._daemon.manager
        return [
            {
                "file": name,
                "problems": [problem.render() for problem in manager.problems if problem.path == name],
                "rules": [rule_id for rule_id, item in manager.running.items() if item.rule.path == name],
            }
            for name in manager.files
        ]

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
            found |= {"files": uploads.files, "retries": uploads.retries, "last_error": uploads.last_error}
        return found

    def _samples(self) -> Iterator[Sample]:
        daemon = self._daemon
        yield sample("penstock_up_seconds", (daemon.clock.monotonic_ms() - daemon.started_ms) / 1000)
        yield sample("penstock_build_info", 1, version=version(), build=build())
        yield sample("penstock_resident_bytes", resident_bytes())
        yield sample("penstock_clock_steps_total", daemon.clock.steps)
        yield sample("penstock_rules", len(daemon.manager.running), state="running")
        yield sample("penstock_rules", len(daemon.manager.stopped), state="stopped")
        yield sample("penstock_rules", len(daemon.manager.asleep), state="asleep")
        yield sample("penstock_rules", len(daemon.manager.failed), state="failed")
        yield sample("penstock_defects_total", daemon.gateway.defects + daemon.engine.dispatch.defects)
        yield sample("penstock_reloads_total", daemon.manager.reloads)
        yield sample(
            "penstock_file_problems", len({item.path for item in daemon.manager.problems if item.is_error})
        )
        yield sample("penstock_intake_bytes", daemon.intake.bytes)
        yield sample("penstock_intake_pauses_total", daemon.gateway.pauses)
        yield sample("penstock_intake_dropped_total", daemon.gateway.backlog.dropped)
        yield sample("penstock_redelivered_messages_total", daemon.gateway.brokers.recognised)
        yield sample("penstock_repeated_keys_total", daemon.gateway.message_keys.recognised)
        yield sample("penstock_unacknowledged_messages", daemon.commits.unacknowledged)
        for stream, count in daemon.gateway.streams.received.items():
            yield sample("penstock_intake_messages_total", count, stream=stream)
        for reason, count in daemon.gateway.rejected.items():
            yield sample("penstock_rejected_messages_total", count, reason=reason)
        for name, source in daemon.gateway.sources.items():
            yield sample("penstock_source_connected", source.stats["connected"], source=name)
            yield sample("penstock_source_reconnects_total", max(0, source.stats["epoch"] - 1), source=name)
        yield sample("penstock_unrouted_messages_total", daemon.gateway.streams.unrouted)
        yield from self._journal_samples()
        yield sample("penstock_dead_letters_total", daemon.dead_letters.written)
        yield sample("penstock_dead_letters_lost_total", daemon.dead_letters.lost)
        yield from self._rule_samples()
        yield from self._table_samples()
        yield from self._spool_samples()

    def _journal_samples(self) -> Iterator[Sample]:
        told = self._journal()
        yield sample("penstock_commits_total", told["commits"])
        yield sample("penstock_commit_failures_total", told["failures"])
        yield sample("penstock_commit_last_ms", told["last_ms"])
        yield sample("penstock_journal_syncs_total", told["syncs"])
        yield sample("penstock_journal_written_bytes_total", told["written_bytes"])
        yield sample("penstock_journal_replay_bytes", told["replay_bytes"])
        yield sample("penstock_journal_damaged_bytes", told["recovered"]["damaged_bytes"])
        yield sample("penstock_recovery_ms", told["recovered"]["ms"])
        yield sample("penstock_snapshots_total", told["snapshot"]["made"])
        yield sample("penstock_snapshot_failures_total", told["snapshot"]["failures"])
        if told["snapshot"]["age_ms"] is not None:
            yield sample("penstock_snapshot_age_seconds", told["snapshot"]["age_ms"] / 1000)

    def _rule_samples(self) -> Iterator[Sample]:
        daemon = self._daemon
        memory = self._memory()
        for rule_id in daemon.manager.running:
            running = daemon.manager.running[rule_id]
            began = {"began": running.state, "differs": ", ".join(running.differs)}
            yield sample("penstock_rule_info", 1, rule=rule_id, hash=running.hash, **began)
            counters = daemon.engine.counters(rule_id)
            for counter, metric in COUNTERS.items():
                if counter in counters:
                    yield sample(metric, counters[counter], rule=rule_id)
            if (fired_ms := daemon.outbox.fired.get(rule_id)) is not None:
                yield sample("penstock_rule_last_fired_timestamp_seconds", fired_ms / 1000, rule=rule_id)
            for condition, short in self._why.shortfalls(rule_id).items():
                yield sample("penstock_rule_nearest_miss", short, rule=rule_id, condition=condition)
            for check in self._expectations(rule_id):
                labels = {"rule": rule_id, "check": check["check"], "then": check["then"]}
                if "broken" in check:
                    yield sample("penstock_rule_expect_broken_rows_total", check["broken"], **labels)
                else:
                    yield sample("penstock_rule_expect_age_seconds", check["age_ms"] / 1000, **labels)
                    yield sample("penstock_rule_expect_stale", check["stale"], **labels)
            if rule_id in memory:
                yield sample("penstock_rule_memory_bytes", memory[rule_id], rule=rule_id)
            yield sample("penstock_rule_state_bytes", self._state_bytes(rule_id), rule=rule_id)
            for action in daemon.outbox.actions(rule_id):
                stats, labels = action.delivery.stats(), {"rule": rule_id, "sink": action.delivery.name}
                yield sample("penstock_delivery_sent_total", stats.sent, **labels)
                yield sample("penstock_delivery_retries_total", stats.retried, **labels)
                yield sample("penstock_delivery_rejected_total", stats.rejected, **labels)
                yield sample("penstock_delivery_queued_rows", stats.queued, **labels)

    def _lookups(self) -> dict[str, Any]:
        """The tables of stores with their counts, and the health of their stores."""
        sources = self._daemon.manager.sources
        health = {} if sources is None or sources.stores is None else sources.stores.health()
        asked = self._daemon.manager.tables.asked()
        return {name: {**counts, **health.get(name, {})} for name, counts in asked.items()}

    def _lookup_samples(self) -> Iterator[Sample]:
        for name, counts in self._lookups().items():
            for what in ("requests", "cached", "found", "missed", "unanswered"):
                yield sample(f"penstock_lookup_{what}_total", counts[what], table=name)
            yield sample("penstock_lookup_failures_total", counts.get("failures", 0), table=name)
            yield sample("penstock_lookup_waiting", counts["waiting"], table=name)

    def _table_samples(self) -> Iterator[Sample]:
        for name, counts in self._daemon.manager.tables.counters().items():
            yield sample("penstock_table_rows", counts["rows"], table=name)
            for why in ("refused", "expired", "dropped"):
                yield sample(f"penstock_table_{why}_total", counts[why], table=name)
        yield from self._lookup_samples()

    def _spool_samples(self) -> Iterator[Sample]:
        cloud = self._daemon.cloud
        for name, spool in zip(("spool", "archive"), cloud.spools.opened, strict=False):
            stats = spool.stats()
            yield sample(f"penstock_{name}_rows", stats.rows)
            yield sample(f"penstock_{name}_bytes", stats.bytes)
            yield sample(f"penstock_{name}_lost_rows_total", stats.counters["lost"])
            if (uploader := cloud.uploader(spool)) is not None:
                prefix = "penstock_" if name == "spool" else f"penstock_{name}_"
                yield sample(f"{prefix}uploads_total", uploader.stats.files)
                yield sample(f"{prefix}upload_failures_total", uploader.stats.retries)


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """The properties of a partition as JSON values: an event is an object, bytes and the like are text."""
    found: dict[str, Any] = json.loads(json.dumps(row, default=_as_text))
    return found


def _as_text(value: object) -> Any:
    return dict(as_dict(value)) if isinstance(value, msgspec.Struct) else str(value)
