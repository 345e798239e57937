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

from edge.delivery.actions import Builder
from edge.delivery.assigned import Action
from edge.delivery.lasting import lasting_streams
from edge.deploy.brokers import Brokers
from edge.deploy.circles import moves
from edge.deploy.feeds import Feeds, feeds
from edge.deploy.memory_streams import MemoryStreams
from edge.deploy.reading.wanted import Wanted
from edge.deploy.row_shapes import row_maker, shape_of, struct_columns
from edge.deploy.running import SINCE_SNAPSHOT, Running, definition
from edge.deploy.schedules import asleep, look_again_ms
from edge.deploy.stream_sources import StreamSources
from edge.deploy.tables import Tables, declare_streams
from edge.deploy.telling import tell
from edge.gateway import Gateway
from edge.intake.sources.registry import Configured
from edge.intake.streams import StreamTable
from edge.journal.record import Deployment, Removal
from rules.compiled import CompiledRule
from rules.problems import FileProblem
from rules.source.directory import file_name
from sinks import MemoryBus
from sql.engine.interplay import groups
from sql.errors import CorruptState
from sql.plan.relation_plan import relations_of
from sql.plan.signature import differences
from sql.record import replace
from sql.rows import Shape
from sql.types import Saved

log = logging.getLogger("penstock.rules")

ACTION_CLOSE_MS = 2_000
"""The time for which a removed action may flush, in the loop; results that it still holds then
become dead letters."""


class Manager:
    """Applies the contents of the rule directory to the gateway. Used by the gateway loop only."""

    def __init__(
        self,
        gateway: Gateway,
        builder: Builder,
        memory: MemoryBus,
        brokers: Brokers,
        *,
        payload_bytes_max: int,
        grace_ms: int = 0,
        sources: StreamSources | None = None,
        configured: Configured | None = None,
    ) -> None:
        """`grace_ms`: how long a rule whose file is gone goes on, its results held back."""
        self.running: dict[str, Running] = {}
        self.tables = Tables(gateway.engine)
        self.stopped: tuple[str, ...] = ()
        self.failed: dict[str, str] = {}
        self.problems: list[FileProblem] = []
        self.files: tuple[str, ...] = ()
        self.reloads = 0
        self._gateway = gateway
        self._builder = builder
        self.brokers = brokers
        self._payload_bytes_max = payload_bytes_max
        self._now_ms = 0
        self.texts: dict[str, str] = {}
        """The rule files in use, by name."""
        self.kept: frozenset[str] = frozenset()
        self.leaving: dict[str, int] = {}
        """Rules that no file has any more, and when they are removed."""
        self.left: dict[str, tuple[str, str]] = {}
        """The file of each of them, by name, and its text when it had the rule."""
        self.asleep: dict[str, int | None] = {}
        """Rules whose schedule lets them not run now, and when each begins again (None: never)."""
        self._wanted: Wanted | None = None
        self._wake_ms: int | None = None
        """The time at which schedules are to be evaluated again; None: no schedule."""
        self._grace_ms = grace_ms
        self._structs: dict[str, frozenset[str]] = {}
        self.memory_streams = MemoryStreams(gateway, memory)
        self.sources = sources
        self._configured = configured
        self._feeds = Feeds()

    def reload(self, wanted: Wanted) -> None:
        """Make the running rules those that are wanted, and record it."""
        self.reloads += 1
        now_ms = self._gateway.clock.now_ms()
        numbers = {
            rule_id: last
            for rule_id, rule in wanted.rules.items()
            if (last := self._builder.last_number(rule)) > self._gateway.outbox.numbers.get(rule_id, 0)
        }
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
        self._tell(wanted)
        self._now_ms = now_ms
        self._gateway.outbox.numbers.update(numbers)
        before, self.texts, self.kept = self.texts, wanted.texts, wanted.kept
        catalog = self._gateway.engine.catalog
        emptied = self._declare(wanted)
        wanted = self._by_schedule(wanted)
        for rule_id in [name for name in self.running if name not in wanted.rules]:
            if self.running[rule_id].rule.path not in wanted.kept:
                self._let_go(rule_id, before)
        self.failed = {rule_id: why for rule_id, why in self.failed.items() if rule_id in wanted.rules}
        self._structs = struct_columns(catalog, self._all_rules(wanted))
        for rule_id, rule in wanted.rules.items():
            known = self.running.get(rule_id)
            is_emptied = bool(emptied & relations_of(rule.plan))
            if known is None or is_emptied or definition(known.rule) != definition(rule):
                self._deploy(rule, known, anew=is_emptied)
            if self.leaving.pop(rule_id, None) is not None:
                del self.left[rule_id]
                self._gateway.outbox.release(rule_id)
                log.info("rule.came_back", extra={"rule": rule_id})
        self._drop_tables(wanted)
        self._reshape()
        self._connect_streams()
        self._gateway.follow_chains(now_ms)
        self._set_alarm()

    def _by_schedule(self, wanted: Wanted) -> Wanted:
        """The rules wanted now: without those that their schedule suspends, which are taken out of
        the engine; their actions stay."""
        before, self._wanted, self.asleep = self.asleep, wanted, asleep(wanted.rules, self._now_ms)
        outbox = self._gateway.outbox
        for rule_id in before.keys() - wanted.rules.keys():
            self._close(outbox.assigned.assign(rule_id, ()))
        for rule_id in self.asleep:
            if self.running.pop(rule_id, None) is not None:
                self._gateway.engine.remove(rule_id)
                log.info("rule.asleep", extra={"rule": rule_id, "until_ms": self.asleep[rule_id]})
            self._connect_actions(wanted.rules[rule_id])
        self._wake_ms = look_again_ms(wanted.rules, self._now_ms)
        return replace(
            wanted, rules={name: rule for name, rule in wanted.rules.items() if name not in self.asleep}
        )

    def _let_go(self, rule_id: str, texts: Mapping[str, str]) -> None:
        """No file has the rule: it goes on for a while without results, in case its file comes back."""
        if not self._grace_ms:
            self._stop(rule_id)
        elif rule_id not in self.leaving:
            self.leaving[rule_id] = self._now_ms + self._grace_ms
            name = file_name(self.running[rule_id].rule.path)
            self.left[rule_id] = (name, texts.get(name, ""))
            self._gateway.outbox.hold(rule_id)
            log.info("rule.leaving", extra={"rule": rule_id, "grace_ms": self._grace_ms})

    def end_grace(self, now_ms: int) -> None:
        """Remove the rules whose time is over, and record it."""
        over = [rule_id for rule_id, until_ms in self.leaving.items() if until_ms <= now_ms]
        if over and self._gateway.commits is not None:
            self._gateway.commits.append(Removal(now_ms, over))
        self.remove(over)
        self._run_sources()

    def remove(self, rules: Iterable[str]) -> None:
        """Stop rules for good."""
        for rule_id in rules:
            if self.leaving.pop(rule_id, None) is not None:
                del self.left[rule_id]
                self._stop(rule_id)
        self._reshape()
        self._connect_streams()
        self._set_alarm()

    def _set_alarm(self) -> None:
        instants = [*self.leaving.values(), *([] if self._wake_ms is None else [self._wake_ms])]
        self._gateway.alarm_ms, self._gateway.on_alarm = min(instants, default=None), self._alarm

    def _alarm(self, now_ms: int) -> None:
        """A time of grace is over, or rules may wake up and fall asleep."""
        self.end_grace(now_ms)
        if self._wake_ms is not None and self._wake_ms <= now_ms and self._wanted is not None:
            self.reload(self._wanted)

    def restore(
        self, wanted: Wanted, saved: Mapping[str, Any], left: Mapping[str, CompiledRule], now_ms: int
    ) -> None:
        """Run the rules of a snapshot with their states, in its order, and its tables and variables.

        `wanted` is what ran then, `left` what no file had any more; `saved` has rules, tables and variables.
        """
        states: Mapping[str, Any] = saved["rules"]
        rules = {**wanted.rules, **left}
        self._tell(wanted)
        self._now_ms = now_ms
        self.texts, self.kept = wanted.texts, wanted.kept
        declare_streams(self._gateway.engine.catalog, wanted.catalog)
        self._gateway.engine.catalog.restore_variables(saved.get("variables", {}))
        self.tables.restore(wanted.tables, saved.get("tables", {}), now_ms)
        self._by_schedule(wanted)
        self._structs = struct_columns(self._gateway.engine.catalog, rules.values())
        for rule_id, state in states.items():
            if rule_id in rules:
                self._deploy(rules[rule_id], None, state)
            else:
                log.error(
                    "rule.state_dropped", extra={"rule": rule_id, "note": "its rule file compiles no more"}
                )
        self._connect_streams()

    def restore_leaving(self, leaving: Mapping[str, int], left: Mapping[str, tuple[str, str]]) -> None:
        """These rules were about to be removed when the snapshot was taken."""
        self.leaving = {rule_id: until_ms for rule_id, until_ms in leaving.items() if rule_id in self.running}
        self.left = {rule_id: (left[rule_id][0], left[rule_id][1]) for rule_id in self.leaving}
        for rule_id in self.leaving:
            self._gateway.outbox.hold(rule_id)
        self._set_alarm()

    def restored(self) -> None:
        """A recovery is over: all that runs now did so before."""
        for item in self.running.values():
            item.state = "restored"

    def _declare(self, wanted: Wanted) -> frozenset[str]:
        """Make the streams, variables and tables of the rule files known; the tables
        that have been emptied."""
        declare_streams(self._gateway.engine.catalog, wanted.catalog)
        return self.tables.declare(wanted.tables, self._now_ms)

    def _drop_tables(self, wanted: Wanted) -> None:
        used = {name for item in self.running.values() for name in relations_of(item.rule.plan)}
        self.tables.drop(wanted.tables, wanted.kept, used)

    @property
    def failed_sources(self) -> dict[str, str]:
        """Streams whose source could not be made, and why."""
        return {} if self.sources is None else self.sources.failed

    def _all_rules(self, wanted: Wanted) -> list[CompiledRule]:
        """All rules that will run: the wanted rules, and those of files whose last good version goes on."""
        kept = [item.rule for rule_id, item in self.running.items() if rule_id not in wanted.rules]
        return [*wanted.rules.values(), *kept]

    def _reshape(self) -> None:
        """Give other rules of a stream rows of another shape, where a new rule sees more
        of it or one is gone."""
        for rule_id, item in self.running.items():
            shape = shape_of(item.rule.plan, self._structs)
            if shape != item.shape:
                state = self._gateway.engine.snapshot(rule_id)
                self._start(item.rule, state, shape)
                item.shape = shape

    def _start(self, rule: CompiledRule, state: dict[str, Any] | None, shape: Shape) -> None:
        make_row = row_maker(rule.plan, shape)
        self._gateway.engine.deploy(rule.id, rule.plan, self._now_ms, state, shape=shape, make_row=make_row)

    def states(self) -> dict[str, Any]:
        """The states of all rules, in the order of their deployment; of one that fails, None."""
        return {
            rule_id: self._state(rule_id)
            for rule_id in self._gateway.engine.queries
            if rule_id in self.running
        }

    def _state(self, rule_id: str) -> dict[str, Any] | None:
        try:
            return self._gateway.engine.snapshot(rule_id)
        except Exception as error:
            log.error("rule.snapshot_failed", extra={"rule": rule_id, "error": repr(error)}, exc_info=error)
            return None

    def _tell(self, wanted: Wanted) -> None:
        """Log problems that are new; all of them stay in /status."""
        running = wanted.paths.union(item.rule.path for item in self.running.values())
        tell(wanted.problems, self.problems, running)
        self.problems, self.files, self.stopped = wanted.problems, wanted.files, wanted.stopped

    def _deploy(
        self, rule: CompiledRule, known: Running | None, state: Saved = None, *, anew: bool = False
    ) -> None:
        """Start a rule, or put it in the place of its earlier version, whose state it keeps
        unless it begins `anew`.

        `state`: that of a snapshot.
        """
        engine = self._gateway.engine
        if known and not anew:
            state = engine.snapshot(rule.id)
        shape = shape_of(rule.plan, self._structs)
        began, differs = "new", list[str]()
        try:
            self._start(rule, state, shape)
            if state is not None:
                same = rule.plan.fingerprint == (
                    known.rule.plan.fingerprint if known else state.get("fingerprint")
                )
                began = ("kept" if known else "restored") if same else "reset"
                if not same:
                    differs = differences(known.rule.plan, rule.plan) if known else [SINCE_SNAPSHOT]
        except CorruptState as error:
            log.error("rule.state_unusable", extra={"rule": rule.id, "error": str(error)})
            self._start(rule, None, shape)
            began, differs = "reset", [f"the saved state cannot be read: {error}"]
        except Exception as error:
            log.error(
                "rule.failed",
                extra={"rule": rule.id, "file": rule.path, "error": repr(error)},
                exc_info=error,
            )
            self.failed[rule.id] = f"{type(error).__name__}: {error}"
            return
        self.failed.pop(rule.id, None)
        self._connect_actions(rule)
        self.running[rule.id] = Running(rule, began, shape, tuple(differs))
        why = {"differs": ", ".join(differs)} if differs else {}
        log.info("rule.deployed", extra={"rule": rule.id, "file": rule.path, "state": began, **why})

    def _connect_actions(self, rule: CompiledRule) -> None:
        """Give a rule its actions; those that it has no longer are closed."""
        outbox = self._gateway.outbox
        actions = self._builder.actions(rule, outbox.actions(rule.id))
        self._close(outbox.assigned.assign(rule.id, actions, errors_too=rule.options.send_error))

    def _stop(self, rule_id: str) -> None:
        self._gateway.engine.remove(rule_id)
        held = self._gateway.outbox.drop_held(rule_id)
        if held:
            log.info("rule.results_dropped", extra={"rule": rule_id, "results": held})
        self._close(self._gateway.outbox.assigned.assign(rule_id, ()))
        del self.running[rule_id]
        log.info("rule.stopped", extra={"rule": rule_id})

    def _close(self, actions: Iterable[Action]) -> None:
        actions = list(actions)
        until_ms = self._gateway.clock.monotonic_ms() + ACTION_CLOSE_MS
        for action in actions:
            action.delivery.begin_close(until_ms)
        for action in actions:
            if left := self._gateway.outbox.close_action(action, until_ms):
                log.warning("action.undelivered", extra={"sink": action.delivery.name, "results": left})

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
        found = feeds(catalog, plans, self._payload_bytes_max, meta, self._structs, self._configured)
        rules = [item.rule for item in self.running.values()]
        moved = moves(rules, catalog)
        known = [*found.keys, *(name for plan in self.tables.plans for name in plan.streams)]
        acting = ((rule, self._gateway.outbox.actions(rule.id)) for rule in rules)
        lasting = lasting_streams(acting, moved, known, catalog)
        streams = StreamTable(found.decoded, groups(plans, moved), lasting)
        streams.go_on_from(self._gateway.streams)
        self._gateway.streams = streams
        self._gateway.engine.dispatch.validators.trusted = found.checked
        self._gateway.message_keys.follow(found.keys)
        self._gateway.set_latency(found.latencies_ms)
        self.brokers.follow(found.filters, self.running, self._gateway.brokers)
        self._feeds = found
        self.memory_streams.follow(found.memory)
