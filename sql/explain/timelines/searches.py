"""The part of a timeline about patterns: the time for which each event is part of a search that has begun,
and the filters that the search waits for."""

from __future__ import annotations

from sql.binder.scope import META
from sql.engine.statement.matches import Matches
from sql.explain.timelines.timeline import Line, Row, Stay, label_of
from sql.plan.logical import Plan
from sql.plan.pattern_plan import FilterPlan


class Searches:
    """The observer of a pattern after each step. Lines are found by the identity of the event's row."""

    def __init__(self, matches: Matches) -> None:
        self.matches = matches
        self.lines: dict[int, Line] = {}
        self.counted = 0
        self.live = 0

    def line(self, plan: Plan, stream: str, row: Row, at_ms: int) -> Line:
        """The line of an event that the pattern reads."""
        columns = plan.columns(stream)
        shown = None if columns is None else [name for name in columns if name not in (plan.timestamp, META)]
        alias = f"{stream}: " if len(plan.streams) > 1 else ""
        line = self.lines[id(row)] = Line(alias + label_of(row, shown), at_ms)
        return line

    def sample(self, at_ms: int, arrived: int | None = None) -> None:
        """Record the state after a step. `arrived`: the identity of the row that came, if one did."""
        waits: dict[int, list[str]] = {}
        found = list(self.matches.pattern.searches())
        for search in found:
            what = search.step.stream if isinstance(search.step, FilterPlan) else "a timer"
            for value in search.tags:
                for row in value if isinstance(value, list) else (value,):
                    waits.setdefault(id(row), []).append(what)
        for key, line in self.lines.items():
            is_open = bool(line.stays) and line.stays[-1].leave_ms is None
            if key in waits and not is_open:
                line.stays.append(Stay(at_ms))
            elif key not in waits and is_open:
                line.stays[-1].leave_ms = at_ms
            if key in waits:
                line.remark = "waits for " + " and ".join(dict.fromkeys(waits[key]))
            elif is_open:
                line.remark = ""
        if arrived in self.lines and not self.lines[arrived].stays:
            self.lines[arrived].remark = self._effect(len(found))
        self.counted, self.live = self.matches.counters()["matches"], len(found)

    def _effect(self, live: int) -> str:
        if self.matches.counters()["matches"] > self.counted:
            return "completes a match"
        return "ends a search" if live < self.live else "fits nothing"
