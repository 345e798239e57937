"""Prometheus text for `/metrics`: every metric the daemon has, named and explained in one table.

Components count in plain integers; this module only names and prints them on request. Labels are
bounded: beyond `LABEL_SETS_MAX` label sets of one metric the rest is added up under `other`, so that a
thousand rules cannot flood the server that collects the metrics.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

LABEL_SETS_MAX = 500
"""Label sets printed per metric; the first ones in order of appearance keep their own line."""

METRICS: dict[str, tuple[str, str]] = {
    "penstock_up_seconds": ("gauge", "Seconds since the daemon started."),
    "penstock_build_info": ("gauge", "1; version and build of the program are its labels."),
    "penstock_resident_bytes": ("gauge", "Resident memory of the process."),
    "penstock_clock_steps_total": ("counter", "Jumps of the wall clock by a second or more."),
    "penstock_clock_ahead_seconds": (
        "gauge",
        "How far the gateway's time is ahead of the wall clock, since that was set back.",
    ),
    "penstock_rules": ("gauge", "Rules by state: running, stopped, asleep, failed."),
    "penstock_reloads_total": ("counter", "Changes of the rule directory that were taken over."),
    "penstock_defects_total": ("counter", "Errors inside the engine; the rows are dead letters."),
    "penstock_file_problems": ("gauge", "Rule files that cannot be used as they stand."),
    "penstock_intake_messages_total": ("counter", "Messages received, by stream."),
    "penstock_intake_bytes": ("gauge", "Payload bytes waiting for the rules."),
    "penstock_intake_paused": ("gauge", "1 while the intake is paused; /readyz or a sink has the reason."),
    "penstock_intake_pauses_total": ("counter", "Times the intake was paused because a bound was reached."),
    "penstock_intake_dropped_total": ("counter", "Messages of QoS 0 dropped because too many waited."),
    "penstock_rejected_messages_total": ("counter", "Messages that became dead letters, by reason."),
    "penstock_unrouted_messages_total": (
        "counter",
        "Messages that no running rule reads; acknowledged, and gone.",
    ),
    "penstock_redelivered_messages_total": ("counter", "Messages sent again by the broker and recognised."),
    "penstock_repeated_keys_total": ("counter", "Messages dropped because their messageKey was seen before."),
    "penstock_unacknowledged_messages": ("gauge", "Messages taken in whose effect is not durable yet."),
    "penstock_source_connected": ("gauge", "1 while the source is connected."),
    "penstock_source_reconnects_total": ("counter", "Times the source had to connect again."),
    "penstock_source_dropped_total": (
        "counter",
        "Messages of QoS 0 that a paused source had no room for while results went out on its connection.",
    ),
    "penstock_rule_info": (
        "gauge",
        "1; the rule's hash, how it began (new, kept, restored, reset) and what differed are its labels.",
    ),
    "penstock_rule_events_total": ("counter", "Events a rule has taken in."),
    "penstock_rule_rows_total": ("counter", "Rows a rule has put out."),
    "penstock_rule_rows_skipped_total": (
        "counter",
        "Rows that overdue timers made and `catchUp: skip` left out.",
    ),
    "penstock_rule_late_total": ("counter", "Events below the watermark."),
    "penstock_rule_errors_total": ("counter", "Events a rule could not evaluate."),
    "penstock_rule_refused_total": ("counter", "Events refused: too far in the future, or beyond a bound."),
    "penstock_rule_last_fired_timestamp_seconds": (
        "gauge",
        "When a rule last gave out rows, since the epoch.",
    ),
    "penstock_rule_nearest_miss": (
        "gauge",
        "By how much a condition was missed at least, as last asked by why.",
    ),
    "penstock_rule_expect_broken_rows_total": ("counter", "Rows of a rule that break a check (`expect`)."),
    "penstock_rule_expect_age_seconds": (
        "gauge",
        "Time since the newest row of a rule with a check of freshness.",
    ),
    "penstock_rule_expect_stale": ("gauge", "1 if the newest row of a rule is older than its check allows."),
    "penstock_rule_groups": ("gauge", "Groups a rule holds state for."),
    "penstock_rule_memory_bytes": ("gauge", "Memory a rule takes outside of contexts, estimated."),
    "penstock_rule_state_bytes": ("gauge", "Bytes of a rule's state in the last snapshot."),
    "penstock_table_rows": ("gauge", "Rows of a table or named window."),
    "penstock_table_refused_total": ("counter", "Rows a table refused: beyond maxRows, or of a taken key."),
    "penstock_table_expired_total": ("counter", "Rows that left a table by its ttl."),
    "penstock_table_dropped_total": ("counter", "Rows that left a full table for newer ones."),
    "penstock_context_partitions": ("gauge", "Live partitions of a context."),
    "penstock_context_refused_total": ("counter", "Partitions a context refused: beyond maxPartitions."),
    "penstock_context_memory_bytes": (
        "gauge",
        "Memory the partitions of a context take with the state of all rules in them, estimated.",
    ),
    "penstock_lookup_requests_total": ("counter", "Questions to the store of a lookup table."),
    "penstock_lookup_cached_total": ("counter", "Answers that a lookup table gave from its cache."),
    "penstock_lookup_found_total": ("counter", "Answers with rows."),
    "penstock_lookup_missed_total": ("counter", "Answers without rows."),
    "penstock_lookup_unanswered_total": ("counter", "Requests refused, or not answered within timeoutMs."),
    "penstock_lookup_failures_total": ("counter", "Attempts to ask the store that failed."),
    "penstock_lookup_waiting": ("gauge", "Questions without an answer at this moment."),
    "penstock_delivery_sent_total": ("counter", "Rows a sink has taken."),
    "penstock_delivery_retries_total": ("counter", "Attempts that had to be repeated."),
    "penstock_delivery_rejected_total": ("counter", "Rows a sink refused; they are dead letters."),
    "penstock_delivery_dropped_total": (
        "counter",
        "Results that a full queue dropped for newer ones (`disableBufferFullDiscard: false`).",
    ),
    "penstock_delivery_queued_rows": ("gauge", "Results that wait for a sink, in its queue or before it."),
    "penstock_held_rows_dropped_total": (
        "counter",
        "Rows of rules without a file that were dropped: too many waited, or the rule went.",
    ),
    "penstock_commits_total": ("counter", "Commits: the journal made durable, messages acknowledged."),
    "penstock_commit_failures_total": ("counter", "Commits that failed: nothing was acknowledged."),
    "penstock_commit_last_ms": ("gauge", "How long the last commit took."),
    "penstock_journal_syncs_total": ("counter", "Synced writes of the journal."),
    "penstock_journal_written_bytes_total": (
        "counter",
        "Bytes written to journal and snapshots since the start.",
    ),
    "penstock_journal_replay_bytes": ("gauge", "Bytes of the journal that a restart would replay."),
    "penstock_journal_damaged_bytes": ("gauge", "Bytes of the journal that the last start could not read."),
    "penstock_recovery_ms": ("gauge", "How long the last start took to replay the journal."),
    "penstock_snapshots_total": ("counter", "Snapshots of the state written."),
    "penstock_snapshot_failures_total": ("counter", "Snapshots that could not be written."),
    "penstock_snapshot_age_seconds": ("gauge", "Time since the last snapshot of this run."),
    "penstock_dead_letters_total": ("counter", "Dead letters written."),
    "penstock_dead_letters_lost_total": ("counter", "Dead letters that could not be written."),
    "penstock_spool_rows": ("gauge", "Rows in the spool, not uploaded yet."),
    "penstock_spool_bytes": ("gauge", "Bytes of the spool on disk."),
    "penstock_spool_set_aside_rows": ("gauge", "Rows set aside; `penstock spool verify` has the reasons."),
    "penstock_spool_lost_rows_total": (
        "counter",
        "Rows that were stored and are gone, by the high-water mark.",
    ),
    "penstock_archive_rows": ("gauge", "Archived events that are not uploaded yet."),
    "penstock_archive_bytes": ("gauge", "Bytes of the spool of archived events on disk."),
    "penstock_archive_set_aside_rows": ("gauge", "Archived events set aside."),
    "penstock_archive_lost_rows_total": (
        "counter",
        "Archived events that were stored and are gone, by the high-water mark.",
    ),
    "penstock_archive_uploads_total": (
        "counter",
        "Files of archived events that the cloud has acknowledged.",
    ),
    "penstock_archive_upload_failures_total": ("counter", "Uploads of archived events that failed."),
    "penstock_uploads_total": ("counter", "Files the cloud has acknowledged."),
    "penstock_upload_failures_total": ("counter", "Uploads that failed and will be repeated."),
}


class Sample(NamedTuple):
    """One number of one metric."""

    name: str
    value: float
    labels: tuple[tuple[str, str], ...] = ()


def sample(name: str, value: float, **labels: str) -> Sample:
    """A sample of a metric of the table.

    >>> sample("penstock_rules", 3, state="running")
    Sample(name='penstock_rules', value=3, labels=(('state', 'running'),))
    """
    assert name in METRICS, f"metric {name} is not in the table"
    return Sample(name, value, tuple(labels.items()))


def render(samples: Iterable[Sample]) -> str:
    """The samples in Prometheus text format, grouped by metric, in the order of the table."""
    values: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for name, value, labels in samples:
        known = values.setdefault(name, {})
        is_beyond = labels not in known and len(known) >= LABEL_SETS_MAX
        key = tuple((label, "other") for label, _ in labels) if is_beyond else labels
        known[key] = known.get(key, 0) + value
    lines: list[str] = []
    for name, (kind, text) in METRICS.items():
        if name in values:
            lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
            lines += [f"{name}{_braced(labels)} {_number(value)}" for labels, value in values[name].items()]
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))


def _braced(labels: tuple[tuple[str, str], ...]) -> str:
    if not labels:
        return ""
    pairs = (f'{name}="{_escaped(value)}"' for name, value in labels)
    return "{" + ",".join(pairs) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
