"""One rule during a rerun: the events of its streams, the results of its conditions, the rows it emitted."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from edge.delivery.assigned import rows_of
from edge.deploy.row_shapes import row_maker
from edge.deploy.stream_types import whole_decoder
from edge.intake.broker_state import MAIN
from edge.intake.codecs import CodecError
from edge.journal.reader import FramedRecord
from edge.journal.record import Batch, Deployment, Removal, Timed
from edge.monitor.flight.census import Census
from edge.monitor.flight.rerun import Rerun
from sql import Catalog, Emission
from sql.engine.dispatch import Change
from sql.errors import CorruptState, SqlError
from sql.explain.probes import probes
from sql.explain.tally import Tally
from sql.plan.logical import Plan
from sql.rows import as_dict

PROBE = "why "
"""The prefix of the names of probes; no rule can have such a name."""

EVENTS_KEPT = 200
"""The last events, for an inline test."""

ERRORS_MAX = 10


@dataclass(slots=True)
class ObservedResults:
    """The emissions of the rule in the observed time."""

    emissions: int = 0
    rows: int = 0
    late: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    last_ms: int | None = None
    fired: list[tuple[int, list[dict[str, Any]], list[dict[str, Any]]]] = field(default_factory=list)
    """The last emissions: instant, rows, removed rows."""


@dataclass(slots=True)
class Observations:
    """All observations of a rule between two instants.

    from_ms   the first instant; later than requested where the journal does not reach back so far
    counters  the growth of each of the engine's counters of the rule
    waiting   events that wait for the watermark now
    key       the key whose groups alone are looked at; None: all
    """

    rule: str
    from_ms: int
    until_ms: int
    plan: Plan | None = None
    catalog: Catalog | None = None
    streams: dict[str, Census] = field(default_factory=dict)
    tallies: list[Tally] = field(default_factory=list)
    results: ObservedResults = field(default_factory=ObservedResults)
    counters: dict[str, int] = field(default_factory=dict)
    waiting: int = 0
    next_deadline_ms: int | None = None
    cold_ms: int | None = None
    """Windows of the probes begin empty at this instant, for their state could not be taken over."""
    events: deque[tuple[int, str, dict[str, Any]]] = field(default_factory=lambda: deque(maxlen=EVENTS_KEPT))
    key: str | None = None
    began_ms: int | None = None
    """When the rule was deployed, if that was in this time."""

    @property
    def is_of_a_key(self) -> bool:
        """True if the observations cover the groups with one key only; results are those of all keys."""
        return self.key is not None and any(tally.probe.keys for tally in self.tallies)


def state_of(plan: Plan, state: dict[str, Any]) -> dict[str, Any]:
    """The state of a rule as that of a probe, which keeps the same in windows and groups:
    marked with what the probe computes, in each partition of a context."""
    own = state | {"fingerprint": plan.fingerprint}
    if "bodies" in state:
        own["context"] = None
        own["bodies"] = [[number, state_of(plan, body)] for number, body in state["bodies"]]
    return own


class Observer:
    """Drives a rerun and observes one rule from `from_ms` on."""

    def __init__(
        self,
        make: Callable[[Callable[[Emission, int], None]], Rerun],
        rule: str,
        from_ms: int,
        until_ms: int,
        key: str | None = None,
    ) -> None:
        self.seen = Observations(rule, from_ms, until_ms, key=key)
        self._rule = rule
        self._tallies: dict[str, Tally] = {}
        self._before: Mapping[str, int] = {}
        self._is_watching = False
        self._hooked: set[str] = set()
        self._now_ms = from_ms
        self._rerun = make(self._on_emission)
        self._rerun.letters.on_letter = self._refused

    def run(self) -> Observations:
        """Go through the journal; returns the observations."""
        rerun, seen = self._rerun, self.seen
        start, at_ms = rerun.begin(seen.from_ms)
        oldest_ms = at_ms
        for entry in rerun.entries(start):
            if isinstance(entry.record, Timed):
                now_ms = entry.record.at_ms
                oldest_ms = now_ms if oldest_ms is None else oldest_ms
                self._now_ms = max(self._now_ms, now_ms)
                if now_ms >= seen.from_ms:
                    self._watch()
            if self._is_watching:
                self._arrived(entry)
            rerun.apply(entry)
            if self._is_watching and isinstance(entry.record, Deployment | Removal):
                self._follow_rule(is_deployed=True)
        self._watch()
        if oldest_ms is not None:
            seen.from_ms = max(seen.from_ms, oldest_ms)
        self._finish()
        return seen

    def _watch(self) -> None:
        if not self._is_watching:
            self._is_watching = True
            self._follow_rule()

    # --- the rule -------------------------------------------------------------------------------------------

    def _follow_rule(self, *, is_deployed: bool = False) -> None:
        """The rule may be another than before, or read other streams."""
        running = self._rerun.manager.running.get(self._rule)
        plan = None if running is None else running.rule.plan
        if plan is self.seen.plan:
            return
        self.seen.began_ms = self._now_ms if is_deployed else None
        self._stop_probes()
        self.seen.streams.clear()
        self.seen.events.clear()
        self.seen.results = ObservedResults()
        self.seen.plan = plan
        self.seen.catalog = self._rerun.engine.catalog.copied()
        if plan is not None:
            self._before = self._rerun.engine.counters(self._rule)
            self._count_streams(plan)
            self._start_probes(plan)

    def _stop_probes(self) -> None:
        for name in self._tallies:
            self._rerun.engine.remove(name)
        self._tallies.clear()
        self.seen.tallies.clear()

    def _is_fresh(self) -> bool:
        """True if the rule itself has processed no event yet."""
        return not self._rerun.engine.counters(self._rule).get("events_in")

    def _start_probes(self, plan: Plan) -> None:
        engine, running = self._rerun.engine, self._rerun.manager.running[self._rule]
        state = engine.snapshot(self._rule)
        for number, probe in enumerate(probes(plan)):
            name = f"{PROBE}{number} {self._rule}"
            shape, make_row = running.shape, row_maker(plan, running.shape)
            own = state_of(probe.plan, state) if probe.keeps else None
            try:
                engine.deploy(name, probe.plan, self._now_ms, own, shape=shape, make_row=make_row)
            except SqlError:
                continue
            except CorruptState:  # a probe without HAVING may keep less of a group than its rule
                engine.remove(name)
                own = None
                engine.deploy(name, probe.plan, self._now_ms, shape=shape, make_row=make_row)
            if own is None and probe.stage != "events" and not self._is_fresh():
                self.seen.cold_ms = self._now_ms
            self._tallies[name] = Tally(probe, self.seen.key)
        self.seen.tallies = list(self._tallies.values())

    # --- streams --------------------------------------------------------------------------------------------

    def _count_streams(self, plan: Plan) -> None:
        engine, gateway = self._rerun.engine, self._rerun.gateway
        for name in plan.streams:
            declared = engine.catalog.streams.get(name)
            if name in self.seen.streams or declared is None or declared.is_relation:
                continue
            timestamp = plan.timestamps.get(name, (plan.timestamp, None))[0] if plan.timestamp else None
            decoder = None
            if name in gateway.streams.received:
                with suppress(CodecError):
                    decoder = whole_decoder(declared)
            self.seen.streams[name] = Census(name, declared.datasource, decoder, timestamp)
            if name not in gateway.streams.received and name not in self._hooked:
                self._hooked.add(name)
                engine.dispatch.before.add(name, 0, self._rule, self._counting(name))

    def _counting(self, stream: str) -> Change:
        """Counts rows of a stream that other rules feed, without changing them."""

        def count(row: object, *_: object) -> Any:
            shown, census = as_dict(row), self.seen.streams.get(stream)
            if census is not None:
                census.row(shown, self._now_ms)
                self.seen.events.append((self._now_ms, stream, dict(shown)))
            return row

        return count

    def _arrived(self, entry: FramedRecord) -> None:
        gateway, streams = self._rerun.gateway, self.seen.streams
        connection = entry.record.connection if isinstance(entry.record, Batch) else MAIN
        streams_of = gateway.streams.router(connection).match
        for message in entry.messages:
            for stream in streams_of(message[0]):
                if stream in streams and streams[stream].decoder is not None:
                    rows = streams[stream].message(message[0], message[1], self._now_ms)
                    self.seen.events.extend((self._now_ms, stream, row) for row in rows)

    def _refused(self, letter: Mapping[str, Any], payload: bytes | None) -> None:
        """A message that became a dead letter."""
        if self._is_watching and letter["topic"] and "rule" not in letter:
            router = self._rerun.gateway.streams.router(letter.get("connection", MAIN))
            for stream in letter.get("streams") or router.match(letter["topic"]):
                if stream in self.seen.streams:
                    self.seen.streams[stream].rejected(letter["reason"])

    # --- results --------------------------------------------------------------------------------------------

    def _on_emission(self, emission: Emission, first: int) -> None:
        if not self._is_watching:
            return
        tally = self._tallies.get(emission.rule)
        if tally is not None:
            if emission.kind == "rows":
                tally.add(emission.inserted, emission.at_ms)
            elif emission.kind == "error":
                tally.failed(emission.error or emission.kind)
        elif emission.rule == self._rule:
            self._gave_out(emission)

    def _gave_out(self, emission: Emission) -> None:
        results = self.seen.results
        if emission.kind == "late":
            results.late += len(emission.inserted)
        elif emission.kind == "error":
            text = emission.error or "error"
            results.errors[
                text if text in results.errors or len(results.errors) < ERRORS_MAX else "others"
            ] += 1
        else:
            results.emissions += 1
            results.rows += rows_of(emission)
            results.last_ms = emission.at_ms
            results.fired = [
                *results.fired[-19:],
                (emission.at_ms, emission.inserted, list(emission.removed)),
            ]

    def _finish(self) -> None:
        seen, engine = self.seen, self._rerun.engine
        if self._rule not in engine.queries:
            return
        counters = engine.counters(self._rule)
        seen.counters = {name: count - self._before.get(name, 0) for name, count in counters.items()}
        seen.waiting = counters.get("waiting", 0)
        seen.next_deadline_ms = engine.queries[self._rule].next_deadline()
