"""The output limit: `output … every …`, bound. It has no event before it, so it reads
variables and its own counts."""

from __future__ import annotations

from sql import syntax as ast
from sql.binder.crontabs import bind_crontab
from sql.binder.expressions.assignments import assigned_variable
from sql.binder.expressions.expression_binder import ExpressionBinder
from sql.binder.place import Place
from sql.binder.windows.lengths import bind_period, check_count
from sql.plan.bound import Bound, Const
from sql.plan.clauses import OutputPlan, TerminatedPlan
from sql.types import Type


class OutputLimitBinder:
    """Binds the output limit of one statement."""

    def __init__(self, binder: ExpressionBinder) -> None:
        self.binder = binder
        self.problems = binder.problems

    def bind(self, limit: ast.OutputLimit) -> OutputPlan:
        """The plan of an output limit."""
        if limit.terminated is not None and self.binder.site.context is None:
            message = "without a context nothing ever terminates"
            hint = "write CONTEXT and its name before the statement"
            self.problems.error("B818", message, limit.terminated.span, hint)
        binder = self.binder
        builtins = dict.fromkeys(
            (
                "count_insert",
                "count_remove",
                "count_insert_total",
                "count_remove_total",
                "last_output_timestamp",
            ),
            Type.INTEGER,
        )
        when = Place("output when", aliases=False, analytics=False, builtins=builtins)
        return OutputPlan(
            limit.mode,
            None if limit.after is None else bind_period(binder, limit.after, "'after'"),
            self._event_count(limit.after_events, when, "AFTER", 0),
            None if limit.every is None else bind_period(binder, limit.every, "'every'"),
            self._event_count(limit.every_events, when, "EVERY", 1),
            bind_crontab(binder.site, limit.at),
            self._without_columns(binder.condition(limit.when, when), limit.when, when),
            tuple((item.name, self._assigned(item, when)) for item in limit.then_set),
            None if limit.terminated is None else self._terminated(limit.terminated, when),
        )

    def _terminated(self, node: ast.Terminated, place: Place) -> TerminatedPlan:
        condition = self.binder.condition(node.condition, place)
        self._without_columns(condition, node.condition, place)
        return TerminatedPlan(
            condition, tuple((item.name, self._assigned(item, place)) for item in node.then_set)
        )

    def _event_count(self, node: ast.Expr | None, place: Place, name: str, least: int) -> Bound | None:
        """The number of events of an output limit."""
        if node is None:
            return None
        bound = self.binder.bind(node, place)
        check_count(self.problems, bound, f"{name} … EVENTS takes", node.span, least=least)
        return self._without_columns(bound, node, place)

    def _without_columns(self, bound: Bound | None, node: ast.Expr | None, place: Place) -> Bound | None:
        """An expression of an output limit, which is evaluated without an event."""
        if bound is not None and node is not None and bound.reads_events():
            message = "an output limit cannot read the columns of events"
            hint = f"it has variables and {', '.join(place.builtins)}"
            self.problems.error("B529", message, node.span, hint)
        return bound

    def _assigned(self, item: ast.Assignment, place: Place) -> Bound:
        value = assigned_variable(self.binder, item, place)
        return self._without_columns(value, item.value, place) or Const(None)
