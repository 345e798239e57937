"""The stores of the lookup tables: requests of the engine go out, answers come in as inputs of the loop."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import astuple

from edge.clock import Clock
from edge.intake.lookups.base import LookupEnvironment, LookupKind, LookupSettings, Rows
from edge.intake.lookups.kinds import kinds
from edge.intake.lookups.worker import StoreWorker
from edge.intake.sources.registry import BadSource, Configured, settings_of
from edge.journal.record import Answer, Answers, Policies
from sql import Engine
from sql.catalog.streams import Stream
from sql.plan.lookup_plan import AnswerPolicy, Refusal, Request
from sql.record import Record

if TYPE_CHECKING:
    from edge.gateway import Gateway

log = logging.getLogger("penstock.lookups")

POLICY = AnswerPolicy.__struct_fields__


class LookupStore(Record):
    """The store of a table, as its declaration and the gateway's configuration say."""

    stream: Stream
    kind: LookupKind
    settings: LookupSettings


class Stores:
    """Used by the gateway loop only."""

    def __init__(
        self, environment: LookupEnvironment, configured: Configured, clock: Clock, wake: Callable[[], None]
    ) -> None:
        """`wake` ends the sleep of the loop; it is called on threads when answers have come."""
        self.failed: dict[str, str] = {}
        """Tables whose store could not be made, and why."""
        self._environment = environment
        self._configured = configured
        self._clock = clock
        self._wake = wake
        self._running: dict[str, tuple[LookupStore, StoreWorker]] = {}
        self.answers: deque[tuple[Request, Rows | Refusal]] = deque()

    # --- the stores -----------------------------------------------------------------------------------------

    def apply(self, streams: Iterable[Stream], gateway: Gateway) -> None:
        """Run the stores of these tables, and no others. Policies that are new are recorded."""
        asked = gateway.engine.catalog.lookup_tables
        wanted = dict(self._wanted(streams))
        for name in [name for name, (store, _) in self._running.items() if wanted.get(name) != store]:
            self._running.pop(name)[1].stop()
        for name, store in wanted.items():
            if name not in self._running and (worker := self._begun(name, store)) is not None:
                self._running[name] = store, worker
                worker.ask(asked[name].waiting)
        for name, reason in self.failed.items():
            log.error("lookup.unusable", extra={"table": name, "error": reason})
        changed = {
            name: store.settings.policy
            for name, store in wanted.items()
            if asked[name].policy != store.settings.policy
        }
        if changed:
            record = Policies(self._clock.now_ms(), {name: astuple(item) for name, item in changed.items()})
            if gateway.commits is not None:
                gateway.commits.append(record)
            change_policies(gateway.engine, record)

    def _wanted(self, streams: Iterable[Stream]) -> Iterator[tuple[str, LookupStore]]:
        self.failed = {}
        for stream in streams:
            kind = kinds()[str(stream.options["TYPE"]).lower()]
            try:
                settings = settings_of(kind, stream, self._configured)
            except BadSource as error:
                self.failed[stream.name] = f"{error.option} {error}"
            else:
                yield stream.name, LookupStore(stream, kind, settings)

    def _begun(self, name: str, store: LookupStore) -> StoreWorker | None:
        try:
            lookups = [
                store.kind.make(store.stream, store.settings, self._environment)
                for _ in range(store.settings.connections)
            ]
        except BadSource as error:
            self.failed[name] = f"{error.option} {error}"
            return None
        return StoreWorker(name, lookups, store.settings, self._clock, self._on_answer)

    def stop(self) -> None:
        """Stop all workers: no more requests are sent."""
        for _, worker in self._running.values():
            worker.stop()
        self._running.clear()

    def health(self) -> Mapping[str, dict[str, Any]]:
        """The health of each store, by table."""
        found = {
            name: {**asdict(worker.health), "queued": worker.queued}
            for name, (_, worker) in self._running.items()
        }
        return {**found, **{name: {"error": reason} for name, reason in self.failed.items()}}

    # --- questions and answers ------------------------------------------------------------------------------

    def _on_answer(self, request: Request, answer: Rows | Refusal) -> None:
        """On a thread of a worker."""
        self.answers.append((request, answer))
        self._wake()

    def consult(self, gateway: Gateway, now_ms: int) -> None:
        """Record and apply the answers that have come; send the engine's requests."""
        if self.answers:
            answers = self._taken(now_ms)
            if gateway.commits is not None:
                gateway.commits.append(answers)
            take_answers(gateway, answers)
        if gateway.engine.catalog.requests:
            self._ask(gateway.engine.catalog.requests)

    def _ask(self, requests: list[Request]) -> None:
        for name, (_, worker) in self._running.items():
            if mine := [request for request in requests if request.table == name]:
                worker.ask(mine)
        requests.clear()

    def _taken(self, now_ms: int) -> Answers:
        found: list[Answer] = []
        while self.answers:
            (table, columns, key), answer = self.answers.popleft()
            plain = answer.reason if isinstance(answer, Refusal) else answer
            found.append((table, list(columns), list(key), msgspec.json.encode(plain)))
        return Answers(now_ms, found)


def take_answers(gateway: Gateway, record: Answers) -> None:
    """Apply recorded answers."""
    from sql.engine.answers import answer

    for table, columns, key, text in record.answers:
        request, plain = Request(table, tuple(columns), tuple(key)), msgspec.json.decode(text)
        found = Refusal(plain) if isinstance(plain, str) else plain
        gateway.outbox.hand_over(answer(gateway.engine, request, found, record.at_ms))
        gateway.follow_chains(record.at_ms)


def change_policies(engine: Engine, record: Policies) -> None:
    """Apply recorded policies."""
    for table, values in record.tables.items():
        if table in engine.catalog.lookup_tables:
            engine.catalog.lookup_tables[table].change(
                msgspec.convert(dict(zip(POLICY, values, strict=True)), AnswerPolicy)
            )
    engine.timers.schedule_all()
