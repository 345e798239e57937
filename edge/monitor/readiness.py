"""The reasons of /readyz: why a gateway is not doing all it should."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edge.intake.broker_state import MAIN, source_name

if TYPE_CHECKING:
    from edge.monitor.observed import Observed


def not_ready(daemon: Observed) -> list[str]:
    """The reasons, read in the loop; empty when all is well."""
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
        reasons.append(
            f"{daemon.rule_files.directory}: the rule directory is gone or cannot be read; its rules go on"
        )
    bad = sorted({problem.path for problem in daemon.manager.problems if problem.is_error})
    reasons += [f"{path}: has problems, see /status" for path in bad]
    reasons += [f"rule {rule_id}: {why}" for rule_id, why in daemon.manager.rules.failed.items()]
    if daemon.commits.problem:
        reasons.append(daemon.commits.problem)
    return reasons
