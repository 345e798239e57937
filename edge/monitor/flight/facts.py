"""State of a rule that only the running gateway has: why it does not run, its broker, its deliveries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from edge.monitor.observed import Observed


class DeliveryFact(msgspec.Struct, frozen=True):
    """An action of the rule, with its state and its counts since the start of the gateway."""

    sink: str
    role: str
    state: str
    sent: int
    queued: int
    rejected: int
    last_error: str


class WaitFact(msgspec.Struct, frozen=True):
    """Searches of a pattern that wait for the same filter or timer (`sql.explain.waits.Wait`)."""

    what: str
    count: int
    begun_ms: int
    due_ms: int | None
    tags: dict[str, str]


class Facts(msgspec.Struct, frozen=True):
    """The state at `now_ms`.

    not_running     why the rule does not run; empty when it does
    rules           the ids of all rules
    broker_problem  why there is no connection to the broker of the streams; empty when there is one
    refused         topic filters that the broker refused, and why
    last_fired_ms   the time of the last rows that the rule has ever emitted
    waits           the events that the live searches of its patterns wait for
    """

    rule: str
    now_ms: int
    not_running: str = ""
    rules: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    broker_problem: str = ""
    refused: dict[str, str] = {}
    is_clock_sane: bool = True
    deliveries: tuple[DeliveryFact, ...] = ()
    last_fired_ms: int | None = None
    waits: tuple[WaitFact, ...] = ()


def collect(daemon: Observed, rule: str) -> Facts:
    """Collect the facts from the parts of the gateway; called in its loop."""
    manager = daemon.manager
    running = manager.running.get(rule)
    is_running = running is not None and rule not in manager.grace.leaving
    known = {*manager.running, *manager.stopped, *manager.asleep, *manager.rules.failed}
    streams = () if running is None else running.rule.plan.streams
    brokers = [
        (connection, source)
        for connection, source in daemon.brokers.sources.items()
        if connection in daemon.gateway.streams.connections(streams)
    ]
    stats = [(action, action.stats()) for action in daemon.outbox.actions(rule)]
    return Facts(
        rule,
        daemon.clock.now_ms(),
        not_running="" if is_running else _why_not(daemon, rule),
        rules=tuple(sorted(known)),
        problems=tuple(problem.render() for problem in manager.problems if problem.is_error),
        broker_problem="; ".join(
            (f"'{connection}': " if connection else "") + (source.problem or "not connected")
            for connection, source in brokers
            if not source.connected
        ),
        refused={topic: why for _, source in brokers for topic, why in source.refused.items()},
        is_clock_sane=daemon.clock.is_sane(),
        deliveries=tuple(
            DeliveryFact(
                action.delivery.name,
                action.role,
                found.state,
                found.sent,
                found.queued,
                found.rejected,
                found.last_error,
            )
            for action, found in stats
        ),
        last_fired_ms=daemon.outbox.fired.get(rule),
        waits=() if running is None else _waits(daemon, rule),
    )


def _waits(daemon: Observed, rule: str) -> tuple[WaitFact, ...]:
    from sql.explain.waits import waits  # not at start: it reads all that explain needs

    return tuple(
        WaitFact(wait.what, wait.count, wait.begun_ms, wait.due_ms, wait.tags)
        for wait in waits(daemon.engine.queries.get(rule))
    )


def _why_not(daemon: Observed, rule: str) -> str:
    """Why a rule does not run."""
    manager = daemon.manager
    if rule in manager.grace.leaving:
        return "its file is gone: it is about to be removed, and its results are held back"
    if rule in manager.stopped:
        return "it is stopped: its file says 'triggered: false'"
    if rule in manager.asleep:
        return "its schedule lets it not run now"
    return f"it could not be started: {manager.rules.failed.get(rule)}"
