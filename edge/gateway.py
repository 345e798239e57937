"""The gateway loop: the one thread that owns the engine.

    broker ----> poller --> backlog --> journal, decode --> engine --> outbox --> sinks
    sources --> intake ------^              |
                                         commits --> acknowledge to the sources

One turn takes everything that has come; then fires the timers that are due, hands results over, commits if
that is due, and sleeps until the next deadline or the next message. On a busy line it lets messages wait for
others, at most `latency_ms`: each wake-up costs as much as dozens of messages. There is no polling.

Whatever can change the engine is recorded in the journal first, so `replay` of the records does it all again.
Nothing here reads files or parses rules: `edge.deploy.manager` deploys rules, `edge.daemon` puts the
parts together.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from edge.base.due_timers import DueTimers
from edge.base.message import Message
from edge.clock import Clock
from edge.delivery.assigned import have_receipts
from edge.delivery.dead_letters import DeadLetters
from edge.delivery.outbox import Outbox
from edge.delivery.refusals import Refusals, rule_defect
from edge.intake.backlog import SLICE_BYTES, Arrival, Backlog, tokens_of
from edge.intake.broker_state import MAIN, BrokerStates
from edge.intake.message_keys import MessageKeys
from edge.intake.open_sources import OpenSources
from edge.intake.origins import Origins
from edge.intake.queue import Intake
from edge.intake.streams import ChainedRows, Decoded, StreamTable
from edge.journal.acknowledgements import PendingAcknowledgement
from edge.journal.commits import Commits
from edge.journal.record import Tick
from sql import Engine

log = logging.getLogger("penstock.gateway")

TURN_MS = 20
"""Time for messages before timers, commits and calls of other threads are checked again."""

CHAINED_ROWS_MAX = 100_000
"""Rows that may move through memory topics in one step; more means rules that feed each other in a circle."""

RESUME_SHARE = 0.5
"""The share of their bounds at which sources that were paused are resumed."""

NEVER = -1_000_000
"""Before any time of the monotonic clock."""

SLOW_SINK_RETRY_MS = 50
"""The interval at which results that a full delivery refused are offered again."""


@dataclass(slots=True)
class LoopLimits:
    """Bounds of the loop; see `LimitsConfig`."""

    intake_bytes_max: int = 8_000_000
    unacknowledged_max: int = 20_000
    latency_ms: int = 0


class Deployed(Protocol):
    """The rules that run, and their sources, as the loop needs them: see `edge.deploy.manager`."""

    @property
    def alarm_ms(self) -> int | None:
        """The time at which `on_alarm` is to be called, on the steady clock."""

    def on_alarm(self, now_ms: int) -> None:
        """Do what is due."""


class Gateway:
    """Owns engine, intake and sources. `turn` and everything it calls belong to one thread; `on_*` to any."""

    def __init__(
        self,
        engine: Engine,
        clock: Clock,
        intake: Intake[Arrival],
        outbox: Outbox,
        dead_letters: DeadLetters,
        limits: LoopLimits,
    ) -> None:
        self.engine = engine
        self.clock = clock
        self.intake = intake
        self.outbox = outbox
        self.sources = OpenSources(intake)
        self.streams = StreamTable(())
        self.brokers = BrokerStates()
        self.message_keys = MessageKeys()
        self.latency_ms = limits.latency_ms
        """The longest time that a message may wait for others on its way in."""
        self.deployed: Deployed
        """The deployment of rules into this gateway; set before the loop begins."""
        self.consult: Callable[[int], None] | None = None
        """Called in each turn: it exchanges requests and answers with stores. None: there are none."""
        engine.catalog.requests = []
        self.commits: Commits | None = None
        self.chained: deque[ChainedRows] = deque()
        """Rows that memory actions have emitted in this step."""
        self.refusals = Refusals(dead_letters)
        self.timers = DueTimers(engine)
        self.taps = outbox.taps
        """The listeners to the data that passes."""
        dead_letters.on_letter = lambda letter, payload: self.taps.letter(
            self.streams.router(letter.get("connection", MAIN)).match, letter, payload
        )
        engine.dispatch.on_defect = rule_defect
        self._limits = limits
        self.backlog = Backlog(
            lambda source, topic: self.streams.lane_of(topic, self.brokers.of_source(source)[0])
        )
        self._taken_ms = NEVER
        """When messages were last taken in, on the monotonic clock."""
        self._is_blocked = False
        """Messages wait until slow sinks have taken more of the results."""
        self._is_busy = False
        """Messages came within twice `latency_ms` of those before: further ones are worth waiting for."""
        self._receipts_ms: int | None = None
        """When to look for receipts that came after the last commit, on the monotonic clock."""

    # --- the loop -------------------------------------------------------------------------------------------

    def turn(self) -> int | None:
        """Do everything that can be done now; how long the loop may sleep, in ms (None: until woken)."""
        self.outbox.reconcile()
        if self.intake.calls:
            for call in self.intake.take_calls():
                call()
        began_ms = self.clock.monotonic_ms()
        if self.intake.items:
            self.backlog.put(self.intake.take_items())
            if self.backlog.bytes <= SLICE_BYTES:  # else messages behind them have waited for their reading
                before_ms, self._taken_ms = self._taken_ms, began_ms
                self._is_busy = self._taken_ms - before_ms <= 2 * self.latency_ms
        now_ms = self.clock.now_ms()
        alarm_ms = self.deployed.alarm_ms
        if alarm_ms is not None and alarm_ms <= now_ms:
            self.deployed.on_alarm(now_ms)
        if self.timers.are_due(now_ms) and not (self.timers.are_left and self._is_blocked):
            self._fire(now_ms)
        self._is_blocked = self.outbox.is_full() and not self.sources.closing
        must_wait = self._is_blocked or self.timers.are_left
        ended_ms = began_ms if must_wait else self._push_backlog(now_ms, began_ms)
        if self._taken_ms == began_ms and ended_ms == began_ms + 1:
            self._taken_ms = ended_ms  # it took less than that: clocks count whole milliseconds
        if self.consult is not None:
            self.consult(now_ms)
        commit_in_ms = self._see_to_commits(ended_ms)
        self._brake()
        return self._sleep_ms(commit_in_ms)

    def _see_to_commits(self, now_ms: int) -> int | None:
        """Acknowledge and commit what is due at `now_ms`, on the monotonic clock; the time until more is."""
        commits = self.commits
        if commits is None:
            return None
        if self._receipts_ms is not None and now_ms >= self._receipts_ms and self._record_receipts():
            commits.make()
        due_in_ms = commits.due_in_ms(now_ms)
        if due_in_ms != 0 and not commits.background.is_busy:
            return due_in_ms
        if commits.acknowledgements.is_window_full:  # what comes next is taken at once
            self._taken_ms = self.clock.monotonic_ms() - self.latency_ms
        commits.settle()
        due_in_ms = commits.due_in_ms(self.clock.monotonic_ms())
        if due_in_ms == 0:
            self.commit()
            due_in_ms = commits.due_in_ms(self.clock.monotonic_ms())
        return due_in_ms

    def set_latency(self, of_streams: Iterable[int | None]) -> None:
        """Set the wait of messages to the shortest of the streams' limits (None: the configuration's)."""
        usual_ms = self._limits.latency_ms
        self.latency_ms = min((usual_ms if wish is None else wish for wish in of_streams), default=usual_ms)
        if self.commits is not None:
            self.commits.latency_ms = self.latency_ms

    def commit(self, *, force: bool = False) -> bool:
        """Make everything recorded so far durable, with the receipts of sinks, and acknowledge it."""
        assert self.commits is not None
        self.outbox.reconcile()
        self.commits.share(len(self.streams.decoders))
        self._record_receipts()
        return self.commits.make(force=force)

    def _record_receipts(self) -> bool:
        """Record the receipts of sinks, if there are any. Those of results that wait are looked for again:
        nothing else may happen for long."""
        assert self.commits is not None
        journaled = self.outbox.journaled
        if (receipts := journaled.receipts()) is not None:
            self.commits.append(receipts)
        wait_ms = self.commits.idle_interval_ms
        self._receipts_ms = self.clock.monotonic_ms() + wait_ms if journaled.are_awaited else None
        return receipts is not None

    def run_until(self, is_done: Callable[[], bool]) -> None:
        """Turn until `is_done`, which is evaluated before every turn."""
        while not is_done():
            sleep_ms = self.turn()
            # On a busy line, messages wait for company: at most `latency_ms` since the last look.
            gather = self._is_busy and sleep_ms != 0
            self.intake.poller.wait(sleep_ms, self._taken_ms + self.latency_ms if gather else 0)

    def drain(self, deadline_ms: int) -> None:
        """Process the messages taken in, without sleeping, until the monotonic `deadline_ms`."""
        while (self.intake.items or self.backlog) and self.clock.monotonic_ms() < deadline_ms:
            self.turn()

    def _push_backlog(self, now_ms: int, began_ms: int) -> int:
        """Process what waits, for `TURN_MS` at most from `began_ms` on; when that ended, on the monotonic
        clock."""
        until_ms = began_ms + TURN_MS
        while (arrival := self.backlog.next_slice()) is not None:
            self._process(arrival, now_ms, began_ms)
            ended_ms = self.clock.monotonic_ms()
            self.backlog.took(ended_ms - began_ms)
            began_ms = ended_ms
            if ended_ms >= until_ms:
                break
        return began_ms

    def _process(self, arrival: Arrival, now_ms: int, began_ms: int) -> None:
        """Take in an arrival: record it, let it take effect, and remember what to acknowledge. `began_ms` is
        now on the monotonic clock."""
        if arrival.session is not None:
            if self.commits is not None:
                self.commits.append(arrival.session)
            self.brokers[arrival.session.connection].begin(arrival.session)
        connection, broker = self.brokers.of_source(arrival.source)
        fresh = arrival.messages if broker is None else broker.redeliveries.fresh(arrival.messages)
        if self.message_keys.are_used:
            fresh = self.message_keys.fresh(fresh, self.streams.router(connection).match)
        if fresh and self.commits is not None:
            self.commits.append_batch(now_ms, fresh, connection)
        for bad in arrival.bad:
            self.refusals.message(bad, now_ms, connection)
        if self.taps.listeners:
            self.taps.messages(fresh, now_ms, self.streams.router(connection).match)
        opened = self.outbox.opened = []
        is_lasting = self.take(fresh, now_ms, connection) or len(fresh) < len(arrival.messages)
        tokens = tokens_of(arrival)
        acknowledge = self.sources.acknowledgement(arrival.source) if tokens else None
        if self.commits is not None and acknowledge is not None:
            is_done = None if is_lasting else partial(have_receipts, opened)
            self.commits.acknowledgements.add(PendingAcknowledgement(acknowledge, tokens, began_ms, is_done))

    def take(self, messages: Sequence[Message], now_ms: int, connection: str = MAIN) -> bool:
        """Let recorded messages of a connection take effect; whether it must outlast a crash."""
        decoded = self.decode(messages, now_ms, connection)
        for stream, rows in self.streams.in_order(messages, decoded, connection):
            self._push(stream, rows, now_ms, decoded.origins.get(stream))
            if self.chained:
                self.follow_chains(now_ms)
        return not self.streams.lasting.isdisjoint(decoded.rows)

    def decode(self, messages: Sequence[Message], now_ms: int, connection: str) -> Decoded:
        """The rows of messages; those that cannot be read become dead letters."""
        decoded = self.streams.decode(messages, connection)
        for refused in decoded.bad:
            self.refusals.message(refused.message, now_ms, connection, refused.streams)
        return decoded

    def push(self, stream: str, rows: list[Any], now_ms: int) -> None:
        """Give rows of a stream to its rules, and their chained results to those that read them."""
        self._push(stream, rows, now_ms)
        if self.chained:
            self.follow_chains(now_ms)

    def _push(self, stream: str, rows: list[Any], now_ms: int, origins: Origins | None = None) -> None:
        reader = self.streams.readers.get(stream)
        try:
            if reader is None:
                self.outbox.hand_over(self.engine.push(stream, rows, now_ms), origins)
            elif reader[0] in self.engine.queries:
                self.outbox.hand_over(self.engine.push_table(*reader, rows, now_ms))
        # The rule boundary: a defect must not stop the gateway for ever.
        except Exception as error:  # noqa: BLE001
            self.refusals.rows(error, stream, rows, now_ms)

    def follow_chains(self, now_ms: int) -> None:
        """Rows of memory topics enter their streams, until no rule hands on any more."""
        moved = 0
        while self.chained:
            stream, rows = self.chained.popleft()
            moved += len(rows)
            if moved > CHAINED_ROWS_MAX:
                self._break_circle(stream, rows, now_ms)
                return
            self._push(stream, rows, now_ms)

    def _break_circle(self, stream: str, rows: list[Any], now_ms: int) -> None:
        dropped = len(rows) + sum(len(chained.rows) for chained in self.chained)
        self.chained.clear()
        reason = (
            f"more than {CHAINED_ROWS_MAX} rows moved through memory topics in one step: "
            "rules feed each other"
        )
        self.refusals.chain(reason, stream, dropped, rows[:1], now_ms)

    def _fire(self, now_ms: int) -> None:
        """Record that timers are due, and fire them."""
        if self.commits is not None:
            self.commits.append(Tick(now_ms))
        self.tick(now_ms)

    def tick(self, now_ms: int) -> None:
        """Fire the timers that are due, a share of them where many are."""
        try:
            self.outbox.hand_over(self.timers.fire(now_ms))
            if self.chained:  # what moves on comes behind all that is due
                self.outbox.hand_over(self.timers.fire(now_ms, most=math.inf))
        except Exception as error:  # noqa: BLE001 - the rule boundary, as in push
            self.refusals.defect(error, None)
            self.timers.note_failure()
        self.follow_chains(now_ms)

    def _brake(self) -> None:
        """Pause the sources at a bound, and resume them well below it, so that they do not flutter."""
        sources, limits, commits = self.sources, self._limits, self.commits
        if sources.closing:
            return
        if self.backlog.bytes >= limits.intake_bytes_max:
            self.backlog.relieve(limits.intake_bytes_max)
        unacknowledged = commits.acknowledgements.messages if commits is not None else 0
        share = RESUME_SHARE if sources.paused else 1
        must_pause = (
            self.backlog.bytes >= share * limits.intake_bytes_max
            or unacknowledged >= share * limits.unacknowledged_max
            or self.outbox.is_full()
            or (commits is not None and commits.problem is not None)
        )
        if must_pause == sources.paused:
            return
        if must_pause:
            log.warning(
                "intake.paused", extra={"bytes": self.backlog.bytes, "unacknowledged": unacknowledged}
            )
            sources.pause()
        else:
            log.info("intake.resumed")
            sources.resume()

    def _sleep_ms(self, commit_in_ms: int | None) -> int | None:
        """Until the next thing that is due of itself; 0 when there is work left."""
        if self.intake.items or (self.backlog and not self._is_blocked):
            return 0
        waits = [] if commit_in_ms is None else [commit_in_ms]
        timers_ms = self.timers.wait_ms(self.clock)
        if timers_ms is not None and not (self.timers.are_left and self._is_blocked):
            waits.append(timers_ms)
        if self.deployed.alarm_ms is not None:
            waits.append(max(0, self.deployed.alarm_ms - self.clock.now_ms()))
        if self._receipts_ms is not None:
            waits.append(max(0, self._receipts_ms - self.clock.monotonic_ms()))
        if self.outbox.rows_waiting():
            waits.append(SLOW_SINK_RETRY_MS)
        return min(waits, default=None)
