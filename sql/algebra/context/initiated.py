"""Levels that conditions start: `start … end …`, and `initiated by … terminated by …`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable
from typing import Any, Final

from sql.algebra.context.context_conditions import (
    ConditionBuilder,
    EventCondition,
    TimeCondition,
)
from sql.algebra.context.ends import ends_of
from sql.algebra.context.level import LiveLevel
from sql.algebra.context.partition import Arrival, LevelDefinition, Partition
from sql.algebra.context.pattern_watch import PatternCondition, PatternWatch
from sql.algebra.event import Event
from sql.algebra.pattern.listening import Binding
from sql.codegen.functions import DATA_ERRORS
from sql.plan.context_plan import CrontabPlan, LevelPlan, NowPlan, OverlappingPlan, SpanPlan

START_TIME: Final = 0
END_TIME: Final = 1


class InitiatedDefinition(LevelDefinition):
    """Conditions for the start and for the end of partitions, whose times are the first two properties."""

    def __init__(self, plan: LevelPlan, depth: int, build: ConditionBuilder) -> None:
        super().__init__(plan, depth)
        kind = plan.kind
        assert isinstance(kind, SpanPlan | OverlappingPlan)
        self.start, self.end = build.start(kind.start), build.end(kind.end)
        self.assumes_inside = isinstance(kind.start, CrontabPlan) and isinstance(kind.end, CrontabPlan)
        """Crontabs for both: at activation `now` is inside if the next end comes before, or
        with, the next start."""


class OverlappingDefinition(InitiatedDefinition):
    """`initiated by … terminated by …`. `now`: one partition more at activation."""

    def __init__(self, plan: LevelPlan, depth: int, build: ConditionBuilder) -> None:
        super().__init__(plan, depth, build)
        kind = plan.kind
        assert isinstance(kind, OverlappingPlan)
        self.distinct = build.functions.key(kind.distinct) if kind.distinct else None
        self.now = kind.now


class InitiatedLevel(LiveLevel):
    """A level with conditions for the start and for the end of partitions."""

    definition: InitiatedDefinition

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.starting: PatternWatch | None = None
        """The pattern that starts partitions, while it is watched."""

    def open(
        self,
        now_ms: int,
        arrival: Arrival | None = None,
        match: Binding | None = None,
        key: Hashable = None,
    ) -> Partition:
        """A partition starts now, by an event, by a match or by time."""
        start, values, end_ms = self.definition.start, self.values(), self.ends.next_ms(now_ms)
        values[START_TIME], values[END_TIME] = now_ms, end_ms
        if isinstance(start, EventCondition) and arrival is not None:
            start.keep(arrival.event, values)
        if isinstance(start, PatternCondition) and match is not None:
            start.keep(match, values)
        try:
            return self.life.open(self, key, values, now_ms, arrival, due_ms=end_ms)
        except DATA_ERRORS:
            self.not_started(now_ms)
            raise

    def not_started(self, now_ms: int) -> None:
        """A partition could not start."""

    def belonging(self, arrival: Arrival) -> Iterable[Partition]:
        return self.partitions()

    def close(self, now_ms: int) -> None:
        self.stop_watching()
        super().close(now_ms)

    # --- starts by a pattern --------------------------------------------------------------------------------

    @abstractmethod
    def start_by(self, matches: list[Binding], now_ms: int, arrival: Arrival | None = None) -> None:
        """Start partitions by matches of the pattern, which an event or time has completed."""

    def watch_pattern(self, start: PatternCondition, now_ms: int) -> None:
        self.starting = PatternWatch(start, ())
        self._moved(self.starting, self.starting.start(now_ms), now_ms)

    def enter_pattern(self, arrival: Arrival) -> None:
        if self.starting is not None:
            matches = self.starting.enter(arrival.stream, arrival.event.row, arrival.now_ms)
            self._moved(self.starting, matches, arrival.now_ms, arrival)

    def advance_pattern(self, now_ms: int) -> None:
        if self.starting is not None:
            self._moved(self.starting, self.starting.advance(now_ms), now_ms)

    def _moved(
        self, watch: PatternWatch, matches: list[Binding], now_ms: int, arrival: Arrival | None = None
    ) -> None:
        """The level's deadline is that of the pattern."""
        self.life.move_start(self, watch.pattern.deadline())
        if matches:
            self.start_by(matches, now_ms, arrival)

    def stop_watching(self) -> None:
        if self.starting is not None:
            self.starting.pattern.quit()
            self.starting = None

    def count_match(self, match: Binding, partition: Partition, now_ms: int) -> None:
        """The events of the match that started a partition count in it."""
        start = self.definition.start
        assert isinstance(start, PatternCondition)
        for stream, row in start.counted(match):
            self.life.join(partition, Arrival(stream, Event(row, now_ms, 0), now_ms))

    # --- state ----------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        starting = None if self.starting is None else self.starting.pattern.snapshot()
        return {**super().snapshot(), "starting": starting, "since": self.since}

    def restore(self, state: dict[str, Any], now_ms: int) -> None:
        if state["starting"] is not None:
            assert isinstance(self.definition.start, PatternCondition)
            self.starting = PatternWatch(self.definition.start, ())
            self.starting.restore(state["starting"], now_ms)
        self.since = state.get("since", 0)  # earlier states have none
        super().restore(state, now_ms)


class NonOverlappingLevel(InitiatedLevel):
    """While the partition lives the start is not watched; while there is none the end is not."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.ends = ends_of(self.definition.end, self, self.life, of_all=False)

    @property
    def current(self) -> Partition | None:
        return self.by_key.get(None)

    def watch(self, now_ms: int) -> None:
        if self._is_inside(now_ms):
            self.open(now_ms)
        else:
            self._await(now_ms, now_ms)

    def started(self, partition: Partition, now_ms: int) -> None:
        self.since = self.life.next_watch()
        super().started(partition, now_ms)

    def not_started(self, now_ms: int) -> None:
        if not isinstance(self.definition.start, NowPlan):
            self._await(now_ms, now_ms + 1)  # the next start may be possible

    def ended(self, partition: Partition, now_ms: int, arrival: Arrival | None) -> None:
        # A start that is due at this very instant happens when time next moves. So does one behind a
        # partition that time has ended as it began: at one instant there would be no end of them.
        if arrival is None and partition.values[START_TIME] == now_ms:
            self.life.move_start(self, now_ms + 1)
        else:
            self._await(now_ms, now_ms + 1)

    def _await(self, now_ms: int, earliest_ms: int) -> None:
        """Watch for the start, which time causes at `earliest_ms` or later."""
        self.since = self.life.next_watch()
        start = self.definition.start
        if isinstance(start, NowPlan):
            self.open(now_ms)
        elif isinstance(start, TimeCondition):
            due_ms = max(start.next_ms(now_ms), earliest_ms)
            if due_ms == now_ms:
                self.open(now_ms)
            else:
                self.life.move_start(self, due_ms)
        elif isinstance(start, PatternCondition):
            self.watch_pattern(start, now_ms)

    def start_by(self, matches: list[Binding], now_ms: int, arrival: Arrival | None = None) -> None:
        """Start by the first match of the pattern; it is watched anew after the end."""
        if self.current is not None:
            return
        self.life.move_start(self, None)
        self.stop_watching()
        self.open(now_ms, match=matches[0])
        if self.current is not None:
            self.count_match(matches[0], self.current, now_ms)

    def _is_inside(self, now_ms: int) -> bool:
        start, end = self.definition.start, self.definition.end
        if not self.definition.assumes_inside:
            return False
        assert isinstance(start, TimeCondition)
        assert isinstance(end, TimeCondition)
        return end.next_ms(now_ms) <= start.next_ms(now_ms)

    def start_due(self, now_ms: int) -> None:
        if self.starting is not None:
            self.advance_pattern(now_ms)
        elif isinstance(start := self.definition.start, PatternCondition):
            self.watch_pattern(start, now_ms)
        else:
            self.open(now_ms)

    def act(self, arrival: Arrival) -> None:
        current = self.current
        if current is not None:
            if not self.ends.enter(current, arrival):
                self.visit(current, arrival)
                return
            if self.current is not None:
                arrival.has_ended = True
                self.life.join(self.current, arrival)
                arrival.has_ended = False
                return
        else:
            self.enter_pattern(arrival)
        self.start_by_event(arrival)

    def start_by_event(self, arrival: Arrival) -> None:
        start = self.definition.start
        if self.current is not None or not isinstance(start, EventCondition):
            return
        if start.stream == arrival.stream and start.fits(arrival.event, ()):
            self.open(arrival.now_ms, arrival)

    def unmoved(self, stream: str) -> list[Partition] | None:
        points = self.definition.start, self.definition.end
        hears = any(isinstance(point, PatternCondition | EventCondition) for point in points)
        return None if hears or not self.is_innermost else self.partitions()


class OverlappingLevel(InitiatedLevel):
    """Each trigger allocates; every event belongs to every live partition."""

    definition: OverlappingDefinition

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.ends = ends_of(self.definition.end, self, self.life, of_all=True)
        start = self.definition.start
        self.event_start = start if isinstance(start, EventCondition) else None

    def place_of(self, partition: Partition) -> Hashable:
        """Its value with `distinct`: that of one partition at a time. Else nothing finds it."""
        return partition if self.definition.distinct is None else partition.key

    def watch(self, now_ms: int) -> None:
        start = self.definition.start
        if isinstance(start, TimeCondition):
            self._await(start, now_ms)
        if self.definition.now:
            self.open(now_ms)
        if isinstance(start, PatternCondition):
            self.watch_pattern(start, now_ms)

    def start_by(self, matches: list[Binding], now_ms: int, arrival: Arrival | None = None) -> None:
        """A partition for each match of the pattern. The event that completes it does not count as such."""
        for match in matches:
            partition = self.open(now_ms, match=match)
            if arrival is not None:
                arrival.first.add(partition.id)
            self.count_match(match, partition, now_ms)

    def _await(self, start: TimeCondition, now_ms: int) -> None:
        self.life.move_start(self, max(start.next_ms(now_ms), now_ms + 1))

    def start_due(self, now_ms: int) -> None:
        start = self.definition.start
        if isinstance(start, TimeCondition):
            self._await(start, now_ms)
            self.open(now_ms)
        else:
            self.advance_pattern(now_ms)

    def act(self, arrival: Arrival) -> None:
        self.ends.enter_all(arrival)
        before = None if self.is_innermost else self.partitions()
        if self.event_start is None:
            self.enter_pattern(arrival)
        else:
            self.start_by_event(arrival)
        self.visit_all(arrival, before)

    def start_by_event(self, arrival: Arrival) -> None:
        start, distinct = self.event_start, self.definition.distinct
        if start is None or start.stream != arrival.stream or not start.fits(arrival.event, ()):
            return
        key = None if distinct is None else distinct(arrival.event)
        if distinct is None or key not in self.by_key:
            self.open(arrival.now_ms, arrival, key=key)
