"""Shared event-time stages: time stamps, order, lateness and watermark once for rules that treat them alike.

A shared stage is followed by the same parts as a stream in processing time: a filter index, so that a
released event meets only rules that can match it, and cohorts of rules that share groups. Their clock is the
watermark; a rule that no event meets is only advanced when it has a deadline.

Rules share a stage from the moment at which theirs are in the same state: the same watermark,
the same events waiting.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from sql.emission import Emission
from sql.engine.boundary import Boundary
from sql.engine.event_time.event_time_query import EventTime, SoleRule
from sql.engine.event_time.stage import EventTimeStage, StageRules
from sql.engine.families import At
from sql.engine.filter_index import FilterIndex
from sql.engine.query import Running
from sql.engine.sampled.sampled_query import SampledQuery
from sql.engine.sampled.shared_groups import GroupCohort
from sql.engine.sharing import SHARING_MIN, Cohort, Defect, cohorts
from sql.engine.timers import Timers


class SharedStageRules(StageRules):
    """The rules behind a shared stage."""

    def __init__(self, stage: EventTimeStage, members: Sequence[EventTime], defect: Defect) -> None:
        self.stage = stage
        self.by_name = {member.name: member for member in members}
        self.queries: dict[str, Running] = {member.name: member.query for member in members}
        rules = self.queries.values()
        self.index = FilterIndex(rules, cohorts(rules, SampledQuery, GroupCohort, defect))
        self.has_left = False
        self.timers = Timers(self.queries, {name: place for place, name in enumerate(self.queries)})
        """The deadlines of the rules by the event clock."""
        self.timers.schedule_all()
        self.boundary = Boundary(self.timers, defect)

    # --- membership -----------------------------------------------------------------------------------------

    def own_stage(self, name: str, stage: EventTimeStage) -> EventTimeStage:
        """A rule leaves."""
        self.index.reconcile()
        member = self.by_name.pop(name)
        del self.queries[name]
        if isinstance(member.query, SampledQuery):
            member.query.leave()
        self.has_left = True
        return stage.copied_to(SoleRule(member), member.query.now_ms)

    def schedule(self, name: str) -> None:
        self.timers.schedule(name)

    def deal(self, emissions: list[Emission], due_ms: int) -> list[Emission]:
        """Give each rule what was found for it when the stage had to do something at an instant."""
        for emission in emissions:
            member = self.by_name[emission.rule]
            member.inbox.append(emission)
            member.inbox_ms = due_ms
        # rules may have changed since events came last, and no index of the stream be there
        self.reconcile()
        return []

    def reconcile(self) -> None:
        """Count for the rules the events that the index kept away from them."""
        self.index.reconcile()

    def shares_with(self, name: str) -> list[str]:
        return self.index.shares_with(name)

    # --- events and time ------------------------------------------------------------------------------------

    def give(self, stream: str, rows: Sequence[Any], times: Sequence[int]) -> list[Emission]:
        """Released events, for the rules that can match them."""
        return self.boundary.feed(self.index, stream, rows, times)

    def step_to(self, until_ms: int) -> list[Emission]:
        """Do what is due in any rule up to an instant."""
        out: list[Emission] = []
        while due := self.timers.due(until_ms):
            for name in due:
                step = partial(self.queries[name].step_to, until_ms)
                out += self.boundary.call(name, (), until_ms, step)
        return out

    def table_rows(self, stream: str, rows: Sequence[Any]) -> list[Emission]:
        raise AssertionError("rules that read tables have stages of their own")

    def refuse(self, row: object, why: str, now_ms: int, *, is_future: bool = False) -> list[Emission]:
        members = self.by_name.values()
        return [out for each in members for out in each.refuse(row, why, now_ms, is_future=is_future)]

    def late(self, row: object, at_ms: int) -> list[Emission]:
        return [out for member in self.by_name.values() for out in member.late(row, at_ms)]


class StageCohort(Cohort[EventTime, SharedStageRules]):
    """Event-time rules of one stream that treat time stamps alike."""

    def __init__(self, queries: Sequence[EventTime], defect: Defect) -> None:
        super().__init__(queries, defect)
        self._group()

    def regroup(self, now_ms: int) -> None:
        if any(rules.has_left for rules in self.shared):
            self._group()
        if len(self.shared) + len(self.alone) > 1:
            self._join()

    def push_together(
        self, shared: SharedStageRules, stream: str, rows: Sequence[Any], at: At, out: list[Emission]
    ) -> None:
        assert isinstance(at, int)
        deadline = shared.stage.next_deadline()
        for member in shared.by_name.values():
            out += member.take_inbox() if member.inbox else ()
        out += shared.stage.push(stream, rows, at)
        if shared.stage.next_deadline() != deadline:
            self.woken += shared.by_name

    # --- joining --------------------------------------------------------------------------------------------

    def _group(self) -> None:
        """Find out which members share a stage."""
        alike: dict[EventTimeStage, list[EventTime]] = {}
        for member in self.queries:
            alike.setdefault(member.stage, []).append(member)
        self.alone, self.shared = [], []
        for stage, members in alike.items():
            if isinstance(stage.rules, SoleRule) and len(members) < SHARING_MIN:
                self.alone += members
            else:
                stage.rules = rules = SharedStageRules(stage, members, self.defect)
                self.shared.append(rules)

    def _join(self) -> None:
        """Let those share a stage whose stages are in the same state."""
        heads: dict[EventTimeStage, EventTimeStage] = {}
        for stage in dict.fromkeys(member.stage for member in self.queries):
            heads[stage] = next(
                (head for head in dict.fromkeys(heads.values()) if head.is_like(stage)), stage
            )
        if all(stage is head for stage, head in heads.items()):
            return
        self.reconcile()
        for member in self.queries:
            member.stage = heads[member.stage]
        self._group()
