"""The rules that run: deployed, swapped and stopped as the rule directory changes,
without disturbing the others.

    child process  RuleFiles.read: load, check, plan everything         (may take a while; the loop goes on)
    gateway loop   Manager.apply: swap what differs, between two batches (milliseconds)

A rule whose plan computes the same keeps its state; an unchanged rule is not touched at all.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from edge.delivery.actions import ActionFactory
from edge.delivery.lasting import lasting_streams
from edge.deploy.circles import moves
from edge.deploy.connections import Brokers
from edge.deploy.deployed_rule import definition
from edge.deploy.feeds import Feeds, feeds
from edge.deploy.grace import Grace
from edge.deploy.memory_streams import MemoryStreams
from edge.deploy.problem_log import log_changes
from edge.deploy.reading.wanted import Wanted
from edge.deploy.row_shapes import struct_columns
from edge.deploy.rule_runner import RuleRunner
from edge.deploy.schedules import asleep, look_again_ms
from edge.deploy.stream_sources import StreamSources
from edge.deploy.tables import DeployedTables, declare_streams
from edge.gateway import Gateway
from edge.intake.sources.registry import Configured
from edge.intake.streams import StreamTable
from edge.journal.record import Deployment, Removal
from rules.compiled import CompiledRule
from rules.problems import FileProblem
from rules.source.directory import file_name
from sinks import MemoryBus
from sql.engine.interplay import groups
from sql.plan.relation_plan import relations_of, variables_of
from sql.record import replace

log = logging.getLogger("penstock.rules")

BEHIND = (
    "the spool has rows whose inputs the journal does not have: its end, or all of it, was damaged or "
    "removed. The state is older than those rows, and new ones are numbered behind them; check the disk"
)


class Manager:
    """Applies the contents of the rule directory to the gateway. Used by the gateway loop only."""

    def __init__(
        self,
        gateway: Gateway,
        builder: ActionFactory,
        memory: MemoryBus,
        brokers: Brokers,
        *,
        payload_bytes_max: int,
        grace_ms: int = 0,
        sources: StreamSources | None = None,
        configured: Configured | None = None,
    ) -> None:
        """`grace_ms`: how long a rule whose file is gone goes on, its results held back."""
        self.rules = RuleRunner(gateway, builder)
        self.running = self.rules.running
        self.grace = Grace(gateway.outbox, grace_ms)
        self.tables = DeployedTables(gateway.engine)
        self.stopped: tuple[str, ...] = ()
        self.problems: list[FileProblem] = []
        self.files: tuple[str, ...] = ()
        self.reloads = 0
        self._gateway = gateway
        self._builder = builder
        self.brokers = brokers
        self._payload_bytes_max = payload_bytes_max
        self.texts: dict[str, str] = {}
        """The rule files in use, by name."""
        self.kept: frozenset[str] = frozenset()
        self.going_on: dict[str, dict[str, str]] = {}
        """Rules that go on although the files in use do not define them, with the texts that did."""
        self.asleep: dict[str, int | None] = {}
        """Rules whose schedule lets them not run now, and when each begins again (None: never)."""
        self._wanted: Wanted | None = None
        self._wake_ms: int | None = None
        """The time at which schedules are to be evaluated again; None: no schedule."""
        self.memory_streams = MemoryStreams(gateway, memory)
        self.sources = sources
        self._configured = configured
        self._feeds = Feeds()
        self.alarm_ms: int | None = None
        """The next end of a grace, or time to evaluate schedules."""
        gateway.deployed = self

    def reload(self, wanted: Wanted) -> None:
        """Make the running rules those that are wanted, and record it."""
        self.reloads += 1
        now_ms = self._gateway.clock.now_ms()
        numbers = {
            rule_id: last
            for rule_id, rule in wanted.rules.items()
            if (last := self._builder.last_number(rule)) > self._gateway.outbox.numbers.get(rule_id, 0)
        }
        for rule_id in numbers:
            spooled = self._builder.last_number(wanted.rules[rule_id], cached=False)
            if (rows := spooled - self._gateway.outbox.numbers.get(rule_id, 0)) > 0:
                log.error("journal.behind", extra={"rule": rule_id, "rows": rows, "note": BEHIND})
        shifts = asleep(wanted.rules, now_ms).keys() != self.asleep.keys()
        changed = wanted.texts != self.texts or wanted.kept != self.kept or numbers or shifts
        if self._gateway.commits is not None and changed:
            self._gateway.commits.append(Deployment(now_ms, wanted.texts, sorted(wanted.kept), numbers))
        self.apply(wanted, now_ms, numbers)
        self._run_sources()

    def _run_sources(self) -> None:
        """Run the sources of the streams; never while the journal is replayed, for
        what they read is in it."""
        self.brokers.connect(self._gateway)
        if self.sources is not None:
            fresh = {rule_id for rule_id, item in self.running.items() if item.state in ("new", "reset")}
            self.sources.apply(self._gateway, self._feeds, fresh)

    def apply(self, wanted: Wanted, now_ms: int, numbers: Mapping[str, int]) -> None:
        """Make the running rules those of `wanted`, as of a time.

        `numbers`: the first row number of a rule, if the spool has rows of it that the
        journal does not have.
        """
        self._take_problems(wanted)
        self.rules.now_ms = now_ms
        self._gateway.outbox.numbers.update(numbers)
        before, self.texts, self.kept = self.texts, wanted.texts, wanted.kept
        catalog = self._gateway.engine.catalog
        emptied = self._declare(wanted)
        wanted = self._by_schedule(wanted)
        self._let_go(wanted, before)
        self.rules.forget_failed(wanted.rules)
        self.rules.structs = struct_columns(catalog, self._all_rules(wanted))
        for rule_id, rule in wanted.rules.items():
            known = self.running.get(rule_id)
            is_emptied = bool(emptied & (relations_of(rule.plan) | variables_of(rule.plan)))
            if known is None or is_emptied or definition(known.rule) != definition(rule):
                self.rules.deploy(rule, known, anew=is_emptied)
            self.grace.come_back(rule_id)
            self.going_on.pop(rule_id, None)
        self._drop_tables(wanted)
        self.rules.reshape()
        self._connect_streams()
        self._gateway.follow_chains(now_ms)
        self._set_alarm()

    def _let_go(self, wanted: Wanted, before: dict[str, str]) -> None:
        """Stop the rules that no file has any more, or let their time of grace begin.

        `before`: the texts that were in use so far.
        """
        for rule_id in [name for name in self.running if name not in wanted.rules]:
            path = self.running[rule_id].rule.path
            if path in wanted.kept:
                self.going_on.setdefault(rule_id, before)
                continue
            texts = self.going_on.pop(rule_id, before)
            if self.grace.grace_ms:
                name = file_name(path)
                self.grace.begin(rule_id, name, texts.get(name, ""), self.rules.now_ms)
            else:
                self.rules.stop(rule_id)

    def _by_schedule(self, wanted: Wanted) -> Wanted:
        """The rules wanted now: without those that their schedule suspends, which are taken out of
        the engine; their actions stay."""
        before, self._wanted, self.asleep = self.asleep, wanted, asleep(wanted.rules, self.rules.now_ms)
        outbox = self._gateway.outbox
        for rule_id in before.keys() - wanted.rules.keys():
            self.rules.close(outbox.assigned.assign(rule_id, ()))
        for rule_id in self.asleep:
            if self.running.pop(rule_id, None) is not None:
                self._gateway.engine.remove(rule_id)
                log.info("rule.asleep", extra={"rule": rule_id, "until_ms": self.asleep[rule_id]})
            self.rules.connect_actions(wanted.rules[rule_id])
        self._wake_ms = look_again_ms(wanted.rules, self.rules.now_ms)
        return replace(
            wanted, rules={name: rule for name, rule in wanted.rules.items() if name not in self.asleep}
        )

    def end_grace(self, now_ms: int) -> None:
        """Remove the rules whose time is over, and record it."""
        over = self.grace.over(now_ms)
        if over and self._gateway.commits is not None:
            self._gateway.commits.append(Removal(now_ms, over))
        self.remove(over)
        self._run_sources()

    def remove(self, rules: Iterable[str]) -> None:
        """Stop rules and drop their state."""
        for rule_id in rules:
            if self.grace.end(rule_id):
                self.rules.stop(rule_id)
        self.rules.reshape()
        self._connect_streams()
        self._set_alarm()

    def _set_alarm(self) -> None:
        instants = [*self.grace.leaving.values(), *([] if self._wake_ms is None else [self._wake_ms])]
        self.alarm_ms = min(instants, default=None)

    def on_alarm(self, now_ms: int) -> None:
        """A time of grace is over, or scheduled rules begin or end."""
        self.end_grace(now_ms)
        if self._wake_ms is not None and self._wake_ms <= now_ms and self._wanted is not None:
            self.reload(self._wanted)

    def restore(
        self, wanted: Wanted, saved: Mapping[str, Any], left: Mapping[str, CompiledRule], now_ms: int
    ) -> None:
        """Run the rules of a snapshot with their states, in its order, and its tables and variables.

        `wanted` is what ran then, `left` the rules that went on without being defined in it; `saved` has
        rules, tables and variables.
        """
        states: Mapping[str, Any] = saved["rules"]
        rules = {**left, **wanted.rules}
        self._take_problems(wanted)
        self.rules.now_ms = now_ms
        self.texts, self.kept = wanted.texts, wanted.kept
        declare_streams(self._gateway.engine, wanted.catalog)
        self._gateway.engine.catalog.restore_variables(saved.get("variables", {}))
        self.tables.restore(wanted.tables, saved.get("tables", {}), now_ms)
        self._by_schedule(wanted)
        self.rules.structs = struct_columns(self._gateway.engine.catalog, rules.values())
        for rule_id, state in states.items():
            if rule_id in rules:
                self.rules.deploy(rules[rule_id], None, state)
            else:
                log.error(
                    "rule.state_dropped", extra={"rule": rule_id, "note": "its rule file compiles no more"}
                )
        self._connect_streams()

    def restore_leaving(self, leaving: Mapping[str, int], left: Mapping[str, tuple[str, str]]) -> None:
        """These rules were about to be removed when the snapshot was taken."""
        self.grace.restore(leaving, left, self.running)
        self._set_alarm()

    def restored(self) -> None:
        """Mark all rules as restored, at the end of a recovery."""
        for item in self.running.values():
            item.state = "restored"

    def _declare(self, wanted: Wanted) -> frozenset[str]:
        """Make the streams, variables and tables of the rule files known; the tables
        that have been emptied."""
        declare_streams(self._gateway.engine, wanted.catalog)
        return self.tables.declare(wanted.tables, self.rules.now_ms)

    def _drop_tables(self, wanted: Wanted) -> None:
        plans = [item.rule.plan for item in self.running.values()]
        used = {name for plan in plans for name in relations_of(plan) | variables_of(plan)}
        self.tables.drop(wanted.tables, wanted.kept, used)

    @property
    def failed_sources(self) -> dict[str, str]:
        """Streams whose source could not be made, and why."""
        return {} if self.sources is None else self.sources.failed

    def _all_rules(self, wanted: Wanted) -> list[CompiledRule]:
        """All rules that will run: the wanted rules, and those of files whose last good version goes on."""
        kept = [item.rule for rule_id, item in self.running.items() if rule_id not in wanted.rules]
        return [*wanted.rules.values(), *kept]

    def _take_problems(self, wanted: Wanted) -> None:
        """Keep the problems for /status, and log those that are new or mended.

        A recovery logs none: the files are read again at its end, and notes on those that ran before are
        known then.
        """
        found = wanted.problems
        if self._gateway.commits is None:  # a recovery
            found = [problem for problem in found if not problem.is_error]
        else:
            used = wanted.paths.union(item.rule.path for item in self.running.values())
            log_changes(found, self.problems, used)
        self.problems, self.files, self.stopped = found, wanted.files, wanted.stopped

    def _connect_streams(self) -> None:
        """Decode and subscribe to what the running rules read, and nothing else."""
        plans = [item.rule.plan for item in self.running.values()] + self.tables.plans
        meta = {
            stream
            for item in self.running.values()
            if item.rule.options.send_meta_to_sink
            for stream in item.rule.plan.streams
        }
        catalog = self._gateway.engine.catalog
        found = feeds(catalog, plans, self._payload_bytes_max, meta, self.rules.structs, self._configured)
        rules = [item.rule for item in self.running.values()]
        moved = moves(rules, catalog)
        known = [*found.keys, *(name for plan in self.tables.plans for name in plan.streams)]
        acting = ((rule, self._gateway.outbox.actions(rule.id)) for rule in rules)
        lasting = lasting_streams(acting, moved, known, catalog)
        timed = {name for plan in plans for name in plan.timestamps}
        streams = StreamTable(found.decoded, groups(plans, moved), lasting, timed)
        streams.go_on_from(self._gateway.streams)
        self._gateway.streams = streams
        self._gateway.engine.dispatch.validators.trusted = found.checked
        self._gateway.message_keys.follow(found.keys)
        self._gateway.set_latency(found.latencies_ms)
        self.brokers.follow(found.filters, self.running, self._gateway.brokers)
        self._feeds = found
        self.memory_streams.follow(found.memory, found.meta)
