"""The points at which the partitions of a context start and end, bound."""

from __future__ import annotations

from sql import syntax as ast
from sql.binder.contexts.level_names import NO_SUBQUERY, POINT, LevelNames
from sql.binder.crontabs import bind_crontab
from sql.binder.expressions.expression_binder import ExpressionBinder
from sql.binder.patterns.bind import PatternBinder
from sql.binder.scope import Scope
from sql.binder.windows.lengths import amounts_in, check_amounts
from sql.plan.clauses import PeriodArgument
from sql.plan.context_plan import (
    AfterPlan,
    CrontabPlan,
    EndPlan,
    EventPointPlan,
    NowPlan,
    PatternPointPlan,
    StartPlan,
)
from sql.plan.correlation import correlation_of
from sql.types import Type


class PointBinder:
    """Binds points to plans."""

    def __init__(self, names: LevelNames) -> None:
        self.names = names

    def start(self, node: ast.Point) -> StartPlan:
        """The point at which a partition starts."""
        return NowPlan() if isinstance(node, ast.NowPoint) else self._point(node)

    def end(self, node: ast.Point | None) -> EndPlan | None:
        """The point at which it ends, if there is one."""
        return None if node is None else self._point(node)

    def _point(self, node: ast.Point) -> EndPlan:
        if isinstance(node, ast.EventPoint):
            return self.event(node)
        if isinstance(node, ast.CrontabPoint):
            return self._crontab(node)
        if isinstance(node, ast.PatternPoint):
            return self._pattern_point(node)
        assert isinstance(node, ast.PeriodPoint)
        return AfterPlan(self._period(node.period))

    def event(self, node: ast.EventPoint) -> EventPointPlan:
        """An event that passes a filter."""
        stream = self.names.stream(node.stream, node.span)
        correlation, rest = correlation_of(self.names.filter(node.filter, stream, node.name))
        return EventPointPlan(
            stream.name, rest, self.names.event_place(node.name, stream, node.span), correlation
        )

    def _pattern_point(self, node: ast.PatternPoint) -> PatternPointPlan:
        binder = PatternBinder(node.pattern, self.names.within())
        binder.refuse_annotations("in the definition of a context")
        plan = binder.bind()
        for stream in plan.streams:
            self.names.reads[stream] = None
        if node.name is not None:
            place = self.names.place(
                node.name, Type.OBJECT, node.span, dict.fromkeys((tag.name for tag in plan.tags), Type.ANY)
            )
            return PatternPointPlan(plan, (), place, node.inclusive)
        places = tuple(
            self.names.place(tag.name, Type.ARRAY if tag.is_list else Type.OBJECT, node.span, tag.columns)
            for tag in plan.tags
        )
        return PatternPointPlan(plan, places, None, node.inclusive)

    def _crontab(self, node: ast.CrontabPoint) -> CrontabPlan:
        return CrontabPlan(tuple(bind_crontab(self.names.site, fields) for fields in node.crontabs))

    def _period(self, node: ast.Expr) -> PeriodArgument:
        binder = ExpressionBinder(Scope(self.names.site, []), NO_SUBQUERY)
        amounts = amounts_in(binder, node, "'after'")
        parts = tuple((binder.bind(amount, POINT), unit) for amount, unit in amounts)
        check_amounts(binder, parts, "AFTER takes", "'after'", node.span, zero_allowed=True)
        return PeriodArgument(parts, node.span)
