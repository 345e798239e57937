"""The numbers of /metrics. The gateway's loop reads them; a thread of the HTTP server makes the samples of
rules, which takes longer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from edge.base.memory import resident_bytes
from edge.base.version import build, version
from edge.monitor.metrics import Sample, sample

if TYPE_CHECKING:
    from edge.monitor.figures import Figures
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


class RuleReading(NamedTuple):
    """The numbers of a rule as the loop reads them. Any thread makes samples of them."""

    rule: str
    info: Mapping[str, str]
    counters: Mapping[str, int]
    fired_ms: int | None
    shortfalls: Mapping[str, float]
    expectations: Sequence[Mapping[str, Any]]
    memory_bytes: int | None
    state_bytes: int
    deliveries: Sequence[tuple[str, Stats]]

    def samples(self) -> Iterator[Sample]:
        """The samples of the rule."""
        rule = self.rule
        yield sample("penstock_rule_info", 1, rule=rule, **self.info)
        for counter, metric in COUNTERS.items():
            if counter in self.counters:
                yield sample(metric, self.counters[counter], rule=rule)
        if self.fired_ms is not None:
            yield sample("penstock_rule_last_fired_timestamp_seconds", self.fired_ms / 1000, rule=rule)
        for condition, short in self.shortfalls.items():
            yield sample("penstock_rule_nearest_miss", short, rule=rule, condition=condition)
        yield from self._of_checks()
        if self.memory_bytes is not None:
            yield sample("penstock_rule_memory_bytes", self.memory_bytes, rule=rule)
        yield sample("penstock_rule_state_bytes", self.state_bytes, rule=rule)
        for sink, stats in self.deliveries:
            labels = {"rule": rule, "sink": sink}
            yield sample("penstock_delivery_sent_total", stats.sent, **labels)
            yield sample("penstock_delivery_retries_total", stats.retried, **labels)
            yield sample("penstock_delivery_rejected_total", stats.rejected, **labels)
            yield sample("penstock_delivery_dropped_total", stats.dropped, **labels)
            yield sample("penstock_delivery_queued_rows", stats.queued, **labels)

    def _of_checks(self) -> Iterator[Sample]:
        for check in self.expectations:
            labels = {"rule": self.rule, "check": check["check"], "then": check["then"]}
            if "broken" in check:
                yield sample("penstock_rule_expect_broken_rows_total", check["broken"], **labels)
            else:
                yield sample("penstock_rule_expect_age_seconds", check["age_ms"] / 1000, **labels)
                yield sample("penstock_rule_expect_stale", check["stale"], **labels)


class Samples:
    """The samples of all metrics, in the order in which /metrics shows them."""

    def __init__(self, daemon: Observed, figures: Figures, why: Why) -> None:
        self._daemon = daemon
        self._figures = figures
        self._why = why

    def of_gateway(self) -> Iterator[Sample]:
        """Every sample but those of rules."""
        daemon = self._daemon
        yield sample("penstock_up_seconds", (daemon.clock.monotonic_ms() - daemon.started_ms) / 1000)
        yield sample("penstock_build_info", 1, version=version(), build=build())
        yield sample("penstock_resident_bytes", resident_bytes())
        yield sample("penstock_clock_steps_total", daemon.clock.steps)
        yield sample("penstock_clock_ahead_seconds", daemon.clock.ahead_ms / 1000)
        yield sample("penstock_rules", len(daemon.manager.running), state="running")
        yield sample("penstock_rules", len(daemon.manager.stopped), state="stopped")
        yield sample("penstock_rules", len(daemon.manager.asleep), state="asleep")
        yield sample("penstock_rules", len(daemon.manager.rules.failed), state="failed")
        yield sample("penstock_defects_total", self._figures.defects())
        yield sample("penstock_reloads_total", daemon.manager.reloads)
        yield sample(
            "penstock_file_problems", len({item.path for item in daemon.manager.problems if item.is_error})
        )
        yield sample("penstock_intake_bytes", daemon.gateway.backlog.bytes)
        yield sample("penstock_intake_paused", daemon.gateway.sources.paused)
        yield sample("penstock_intake_pauses_total", daemon.gateway.sources.pauses)
        yield sample("penstock_intake_dropped_total", daemon.gateway.backlog.dropped)
        yield sample("penstock_redelivered_messages_total", daemon.gateway.brokers.recognised)
        yield sample("penstock_repeated_keys_total", daemon.gateway.message_keys.recognised)
        yield sample("penstock_unacknowledged_messages", daemon.commits.acknowledgements.messages)
        for stream, count in daemon.gateway.streams.received.items():
            yield sample("penstock_intake_messages_total", count, stream=stream)
        for reason, count in daemon.gateway.refusals.rejected.items():
            yield sample("penstock_rejected_messages_total", count, reason=reason)
        for name, source in daemon.gateway.sources.items():
            yield sample("penstock_source_connected", source.stats["connected"], source=name)
            yield sample("penstock_source_reconnects_total", max(0, source.stats["epoch"] - 1), source=name)
            if "dropped" in source.stats:
                yield sample("penstock_source_dropped_total", source.stats["dropped"], source=name)
        yield sample("penstock_unrouted_messages_total", daemon.gateway.streams.unrouted)
        yield from self._journal_samples()
        yield sample("penstock_held_rows_dropped_total", daemon.outbox.dropped_held)
        yield sample("penstock_dead_letters_total", daemon.dead_letters.written)
        yield sample("penstock_dead_letters_lost_total", daemon.dead_letters.lost)
        yield from self._table_samples()
        yield from self._context_samples()
        yield from self._spool_samples()

    def _journal_samples(self) -> Iterator[Sample]:
        told = self._figures.journal()
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

    def read(self, names: Iterable[str]) -> list[RuleReading]:
        """The numbers of rules, those of them that run."""
        counted = self._figures.counters(names)
        return [self._read(name, counters) for name, counters in counted.items()]

    def _read(self, rule_id: str, counters: Mapping[str, int]) -> RuleReading:
        daemon, figures = self._daemon, self._figures
        running, deliveries = daemon.manager.running[rule_id], daemon.outbox.actions(rule_id)
        return RuleReading(
            rule_id,
            {"hash": running.hash, "began": running.state, "differs": ", ".join(running.differs)},
            counters,
            daemon.outbox.fired.get(rule_id),
            self._why.shortfalls(rule_id),
            figures.expectations(rule_id),
            figures.memory.known.get(rule_id),
            figures.state_bytes(rule_id),
            [(action.delivery.name, action.stats()) for action in deliveries],
        )

    def _table_samples(self) -> Iterator[Sample]:
        for name, counts in self._daemon.manager.tables.counters().items():
            yield sample("penstock_table_rows", counts["rows"], table=name)
            for why in ("refused", "expired", "dropped"):
                yield sample(f"penstock_table_{why}_total", counts[why], table=name)
        yield from self._lookup_samples()

    def _lookup_samples(self) -> Iterator[Sample]:
        for name, counts in self._figures.lookups().items():
            for what in ("requests", "cached", "found", "missed", "unanswered"):
                yield sample(f"penstock_lookup_{what}_total", counts[what], table=name)
            yield sample("penstock_lookup_failures_total", counts.get("failures", 0), table=name)
            yield sample("penstock_lookup_waiting", counts["waiting"], table=name)

    def _context_samples(self) -> Iterator[Sample]:
        for name, host in self._daemon.engine.contexts.items():
            counts, memory_bytes = host.counters(), self._figures.memory.of_context(host)
            yield sample("penstock_context_partitions", counts["partitions"], context=name)
            yield sample("penstock_context_refused_total", counts["partitions_refused"], context=name)
            yield sample("penstock_context_memory_bytes", memory_bytes, context=name)

    def _spool_samples(self) -> Iterator[Sample]:
        cloud = self._daemon.cloud
        for name, spool in zip(("spool", "archive"), cloud.spools.opened, strict=False):
            stats = spool.stats()
            yield sample(f"penstock_{name}_rows", stats.rows)
            yield sample(f"penstock_{name}_bytes", stats.bytes)
            yield sample(f"penstock_{name}_set_aside_rows", stats.set_aside)
            yield sample(f"penstock_{name}_lost_rows_total", stats.counters["lost"])
            if (uploader := cloud.uploader(spool)) is not None:
                prefix = "penstock_" if name == "spool" else f"penstock_{name}_"
                yield sample(f"{prefix}uploads_total", uploader.stats.files)
                yield sample(f"{prefix}upload_failures_total", uploader.stats.retries)
