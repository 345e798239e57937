"""A context that one rule has for itself: in event time each rule has a watermark, and so
partitions, of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sql.compiler.shared_code import Environment
from sql.emission import Emission
from sql.engine.context.context_member import ContextMember, join
from sql.engine.context.host import ContextHost
from sql.engine.context.lane import Lane
from sql.engine.query import Running, RunningQuery
from sql.engine.time_stamps import by_instant
from sql.plan.logical import Plan


class OwnContext(RunningQuery, Running):
    """The context and its only statement as one query, driven in event time.

    It begins with the first event: the processing clock before it has no meaning here.
    """

    def __init__(self, plan: Plan, env: Environment) -> None:
        super().__init__(env.name, plan, env.now_ms)
        assert plan.context is not None
        self.host = ContextHost(env.name, plan.context, env.catalog)
        self.member: ContextMember | None = None
        self.takes_times = len(plan.streams) == 1 and not env.catalog.variables and not env.catalog.relations
        """True if events of one instant may be given together: they have a lane."""
        self.lane: Lane | None = None

    def _joined(self, now_ms: int, state: Mapping[str, Any] | None = None) -> ContextMember:
        if self.member is None:
            self.member, _ = join(self.host, self.name, self.plan, now_ms, state)
            if self.takes_times and not self.member.outranks:
                self.lane = Lane(self.host, self.plan.streams[0])
        return self.member

    def push_timed(self, stream: str, rows: Sequence[Any], times: Sequence[int]) -> list[Emission]:
        if not self.takes_times:
            return super().push_timed(stream, rows, times)
        out: list[Emission] = []
        for at_ms, events in by_instant(rows, times):
            out += self.step_to(at_ms)
            out += self.push(stream, events, at_ms)
        return out

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        member = self._joined(now_ms)
        self.now_ms = now_ms
        if self.lane is not None:
            return self.lane.push(rows, now_ms)
        out: list[Emission] = []
        for row in rows:
            out += self.host.push(stream, [row], now_ms)
            if stream in member.streams:
                out += member.push(stream, [row], now_ms)
        return out

    def advance(self, now_ms: int) -> list[Emission]:
        self.now_ms = now_ms
        return self.host.advance(now_ms)

    def next_deadline(self) -> int | None:
        return self.host.next_deadline()

    def flush(self, now_ms: int) -> list[Emission]:
        """The source has ended: windows close; partitions that nothing has ended go without output."""
        return [] if self.member is None else self.member.flush(now_ms)

    def variable_changed(self, name: str, now_ms: int) -> None:
        if self.member is not None:
            self.member.variable_changed(name, now_ms)

    def read(self, now_ms: int) -> list[dict[str, Any]]:
        return [] if self.member is None else self.member.read(now_ms)

    def counters(self) -> dict[str, int]:
        found = {} if self.member is None else self.member.counters()
        return {**found, "errors": found.get("errors", 0) + self.counts["errors"]}

    def snapshot(self) -> dict[str, Any]:
        member = None if self.member is None else self.member.snapshot()
        return {
            "fingerprint": self.plan.fingerprint,
            "now": self.now_ms,
            "counts": dict(self.counts),
            "host": self.host.snapshot(),
            "member": member,
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        self.now_ms = snapshot["now"]
        self.counts |= snapshot["counts"]
        if snapshot["member"] is not None:
            member = self._joined(self.now_ms, snapshot["member"])
            self.host.restore(snapshot["host"])
            member.restore(snapshot["member"])
