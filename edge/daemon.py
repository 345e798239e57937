"""The process: puts the parts together, runs the loop, and takes them apart again in the right order.

    start   data directory, spool, snapshot, journal -> rules -> sinks' leftovers -> sources -> HTTP -> watch
    stop    sources -> what was taken in -> sinks flush -> commit -> snapshot -> acknowledgements -> spool

SIGTERM and SIGINT stop in that order within `shutdownTimeoutMs`; a second one exits at once, as at a
power cut, which loses nothing either.
"""

from __future__ import annotations

import contextlib
import logging
import os
import random
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from edge.base import memory, signals
from edge.base.logs import register_secret
from edge.clock import Clock, SystemClock
from edge.config import Config
from edge.config.brokers import own_broker
from edge.delivery.actions import ActionBuilder
from edge.delivery.caches import action_file, sweep
from edge.delivery.cloud_path import CloudPath
from edge.delivery.dead_letters import DeadLetters
from edge.delivery.effects import CommitEffects
from edge.delivery.letters import FOLDER
from edge.delivery.mqtt_lines import Lines
from edge.delivery.outbox import Outbox
from edge.deploy.connections import Broker, Brokers
from edge.deploy.lookup_stores import Stores
from edge.deploy.manager import Manager
from edge.deploy.reading.reader import NotRead, RuleReader
from edge.deploy.reading.wanted import Wanted
from edge.deploy.recover.recovery import Recovery, open_journal
from edge.deploy.stream_sources import StreamSources
from edge.deploy.watch import AGAIN_MS, DirectoryWatch, fingerprint
from edge.gateway import Gateway, LoopLimits
from edge.intake.backlog import Arrival
from edge.intake.broker_state import MAIN
from edge.intake.lookups.base import LookupEnvironment
from edge.intake.queue import Intake
from edge.intake.sources.http_push_server import PushServers
from edge.intake.sources.registry import SourceEnvironment
from edge.journal.commits import Commits
from edge.monitor.access import PageAccess, own_token
from edge.monitor.console.console import Console
from edge.monitor.flight.ask import Why
from edge.monitor.flight.flight_pages import FlightPages
from edge.monitor.flight.listen import Listen
from edge.monitor.http import StatusServer
from edge.monitor.pages import Pages
from edge.monitor.relations import Relations
from edge.monitor.report import StatusReport
from rules.problems import in_words
from rules.secrets import reveal
from sql import Catalog, Engine

log = logging.getLogger("penstock.daemon")

Result = TypeVar("Result")

SWITCH_S = 0.0005
"""The time after which a thread that computes gives way to one that waits; Python's default is 5 ms. The loop
waits so long after each sleep and each send while a thread renders results, packs an upload or writes a
status."""

STOP_SOURCES_SHARE = 0.2
FLUSH_SHARE = 0.6
"""Shares of the time of a shutdown: ending the sources, flushing the sinks; the rest is for commit and
snapshot."""

SNAPSHOT_SHARE = 0.9
"""When a last snapshot must be written, as a share of the whole time."""


class Daemon:
    """One gateway process. `start`, then `run` until a signal, then `stop`."""

    def __init__(self, config: Config, rules: RuleReader, clock: Clock | None = None) -> None:
        self.config = config
        self.clock = clock or SystemClock()
        self.started_ms = self.clock.monotonic_ms()
        self._is_stopping = False
        directory = config.data.dir
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(PermissionError):  # a volume that another user owns
            directory.chmod(0o700)
        limits = config.limits
        self.dead_letters = DeadLetters(
            directory / FOLDER, limits.dead_letter_bytes_max, limits.dead_letter_files_max
        )
        self.cloud = CloudPath(config, self.clock)
        self.spool = self.cloud.spools.results
        self.outbox = Outbox(self.dead_letters, limits.delivery_rows_max)
        self.intake: Intake[Arrival] = Intake()
        self.engine = Engine(Catalog())
        self.gateway = Gateway(
            self.engine,
            self.clock,
            self.intake,
            self.outbox,
            self.dead_letters,
            LoopLimits(limits.intake_bytes_max, limits.unacknowledged_max, config.gateway.latency_ms),
        )
        self.configured = rules.configured
        self.brokers = Brokers(self._broker)
        self.rule_files = rules
        self.manager: Manager
        self.commits: Commits
        self.recovery: Recovery
        self.http: StatusServer | None = None
        self.is_recovering = True
        """The journal is being replayed: there is no loop yet that could answer."""
        self._watch: DirectoryWatch | None = None

    # --- life -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Recover, deploy the rules, connect, and serve. Does not wait for the broker."""
        signals.listen(self.request_stop)
        seen = fingerprint(self.rule_files.directory)
        sys.setswitchinterval(SWITCH_S)
        self._restore()
        self.is_recovering = False
        self.cloud.start()
        self._watch = DirectoryWatch(self.rule_files.directory, self._reload, seen)
        memory.release_startup()
        self.commits.background.be_wary()
        elapsed_ms = self.clock.monotonic_ms() - self.started_ms
        log.info(
            "gateway.started",
            extra={
                "gateway": self.config.gateway.id,
                "rules": len(self.manager.running),
                "http": f"{self.http.host}:{self.http.port}" if self.http else "off",
                "ms": elapsed_ms,
            },
        )

    def run(self) -> int:
        """Run the loop until a signal to stop, then stop; returns the exit code."""
        self.gateway.run_until(lambda: self._is_stopping)
        return 0 if self.stop() else 1

    def stop(self) -> bool:
        """Stop in order within the configured time; whether everything that was taken in is stored."""
        log.info("gateway.stopping")
        began_ms = self.clock.monotonic_ms()
        total_ms = self.config.shutdown_timeout_ms
        if self._watch is not None:
            self._watch.close()
        self.gateway.sources.close()
        self.gateway.drain(began_ms + int(total_ms * STOP_SOURCES_SHARE))
        self._flush_sinks(began_ms + int(total_ms * (STOP_SOURCES_SHARE + FLUSH_SHARE)))
        stored = self.gateway.commit(force=True)
        self._last_snapshot(began_ms + int(total_ms * SNAPSHOT_SHARE))
        # Only now: the acknowledgements of the last commit must still reach the broker.
        self.gateway.sources.stop(max(200, int(total_ms * STOP_SOURCES_SHARE)))
        if self.manager.sources is not None:
            self.manager.sources.close()
        if self.http is not None:
            self.http.close()
        self.intake.close()
        self.cloud.close(began_ms + total_ms)
        self.commits.close()
        self.cloud.spools.close()
        self._close_dead_letters()
        log.info("gateway.stopped", extra={"ms": self.clock.monotonic_ms() - began_ms, "stored": stored})
        return stored

    def request_stop(self) -> None:
        """Request the end of the loop; may be called from any thread, but not from a signal handler."""
        self._is_stopping = True
        self.intake.wake()

    def _serve(self) -> None:
        """Answer over HTTP from now on, the recovery included."""
        http = self.config.http
        if http.bind == "off":
            return
        token = http.token.reveal() if http.token else own_token(self.config.data.dir)
        register_secret(token)
        access = PageAccess(token, frozenset(http.open), http.address[0])
        why = Why(self)
        report = StatusReport(self, why)
        pages: list[Pages] = [Relations(self), FlightPages(why, Listen(self))]
        if http.ui:
            pages.append(Console(self))
        self.http = StatusServer(*http.address, report, access, self._management(report), pages)

    # --- parts ----------------------------------------------------------------------------------------------

    def _management(self, report: StatusReport) -> Any:
        """Management over HTTP, where it is switched on."""
        if not self.config.http.manage:
            return None
        from edge.deploy.manage.audit import Audit
        from edge.deploy.manage.files import ManagedFiles
        from edge.deploy.manage.routes import ManagementRoutes

        files = ManagedFiles(self.rule_files.in_this_process())
        return ManagementRoutes(files, report.status, Audit(self.config.data.dir / "audit.log", self.clock))

    def _broker(self, connection: str) -> Broker | None:
        """A connection to a broker, if it is configured."""
        named = self.configured.brokers.others
        settings = named.get(connection) if connection else own_broker(self.config)
        if settings is None:
            return None
        from edge.intake.sources.mqtt.source import MqttSource

        if settings.options.password is not None:
            register_secret(reveal(settings.options.password))
        rng = random.Random(os.urandom(8))
        return Broker(MqttSource(settings.options, self.clock, rng, poller=self.intake.poller), settings.qos)

    def _manager(self) -> Manager:
        from sinks import Environment, MemoryBus

        config, bus = self.config, MemoryBus()
        output = config.data.dir / "output"
        output.mkdir(mode=0o700, exist_ok=True)
        environment = Environment(
            self.clock,
            random.Random(os.urandom(8)),
            output,
            self.dead_letters,
            bus,
            self.outbox.on_done,
            connections=config.sink_connections,
            cache_dir=config.data.dir / "cache",
        )
        spools = self.cloud.spools
        return Manager(
            self.gateway,
            ActionBuilder(environment, spools, self.clock, self.dead_letters, self.outbox, self._lines()),
            bus,
            self.brokers,
            payload_bytes_max=config.limits.payload_bytes_max,
            grace_ms=config.gateway.removed_grace_ms,
            sources=self._stream_sources(),
            configured=self.configured,
        )

    def _lines(self) -> Lines:
        """The connections of mqtt actions: those of the streams, where they are the same."""
        own, others = own_broker(self.config), self.configured.brokers.others
        brokers = {**({} if own is None else {MAIN: own}), **others}
        options = {name: settings.options for name, settings in brokers.items()}
        rng = random.Random(os.urandom(8))
        return Lines(self.intake.poller, self.clock, rng, options, lambda: self.brokers.sources)

    def _stream_sources(self) -> StreamSources:
        config, directory = self.config, self.config.data.dir
        bytes_max = config.limits.payload_bytes_max
        token = config.http_push.token.reveal() if config.http_push.token else None
        push = PushServers(config.http_push.address, token, bytes_max, config.http_push.connections_max)
        (directory / "input").mkdir(exist_ok=True)
        configured = self.configured
        stores = Stores(
            LookupEnvironment(directory, bytes_max, self.clock), configured, self.clock, self.intake.wake
        )
        environment = SourceEnvironment(
            self.clock, directory / "input", directory / "positions", push, configured, bytes_max
        )
        return StreamSources(environment, stores)

    def _restore(self) -> None:
        """Recover the state of the run before, and deploy the rules as they are now."""
        self.manager = self._manager()
        self.recovery = Recovery(self.gateway, self.manager, self.rule_files, self.dead_letters)
        self._serve()
        effects = CommitEffects(self.cloud.spools, self.clock, self.dead_letters, self.recovery.state)
        self.commits = open_journal(
            self.recovery, self.config.data.dir, self.clock, self.config.journal, effects, spool=self.spool
        )
        self.commits.latency_ms = self.gateway.latency_ms
        self.gateway.commits = self.commits
        self._deploy(self.rule_files.read())
        self.rule_files.close()
        self.outbox.resume()

    def _last_snapshot(self, until_ms: int) -> None:
        """Store the state, so that the next start has nothing to replay; left out where
        there is no time for it."""
        if not self.commits.last_snapshot(until_ms):
            log.info("snapshot.left_out", extra={"note": "the next start replays the journal"})

    # --- events ---------------------------------------------------------------------------------------------

    def ask(self, question: Callable[[], Result]) -> Result:
        """The answer of the loop to a question from any thread. Raises TimeoutError."""
        limit_ms = self.config.http.answer_timeout_ms
        try:
            return self.intake.call(question, limit_ms / 1000)
        except TimeoutError:
            text = f"the gateway loop did not answer within {limit_ms} ms (http.answerTimeoutMs)"
            raise TimeoutError(text) from None

    def _reload(self) -> bool:
        """Called by the watch thread: read the files there, swap the rules in the loop. False if that has
        failed; the watch calls it again."""
        try:
            wanted = self.rule_files.read()
        except NotRead as failure:
            note = f"the rules that run go on; tried again in {AGAIN_MS // 1000} s"
            log.error("rules.not_read", extra={"error": str(failure), "note": note})
            return False
        finally:
            self.rule_files.close()
        wanted.prepare()  # in this thread, so that the loop need not wait for imports
        try:
            self.intake.call(lambda: self._deploy(wanted), timeout_s=60)
        except TimeoutError:
            note = f"the loop was busy; tried again in {AGAIN_MS // 1000} s"
            log.error("rules.reload_timeout", extra={"note": note})
            return False
        return True

    def _deploy(self, wanted: Wanted) -> None:
        """Make the running rules those that are wanted, and remove the files of former rules."""
        self.manager.reload(wanted)
        if any(problem.is_error for problem in wanted.problems):
            return
        folder, used = self.config.data.dir / "cache", set()
        for rule_id in {*self.manager.running, *self.manager.asleep, *self.manager.rules.failed}:
            for action in self.outbox.actions(rule_id):
                name = action.delivery.name
                used.add(action_file(folder, rule_id, action.role, action.position, name))
        sweep(folder, used, self.clock.now_ms(), self.config.gateway.removed_grace_ms)

    def _flush_sinks(self, deadline_ms: int) -> None:
        actions = [action for rule_id in self.manager.running for action in self.outbox.actions(rule_id)]
        for action in actions:
            action.delivery.begin_close(deadline_ms)
        left = sum(action.delivery.close(deadline_ms) + len(action.waiting) for action in actions)
        if left:
            log.warning("sinks.unfinished", extra={"results": left, "note": "stored, sent at the next start"})

    def _close_dead_letters(self) -> None:
        try:
            self.dead_letters.close()
        except OSError as error:
            log.error("dead_letter.lost", extra={"error": in_words(error)})
