"""Binding patterns: tags get their types, filters and parameters their meaning;
what cannot work is refused."""

from __future__ import annotations

from functools import singledispatchmethod

from sql import syntax as ast
from sql.binder.crontabs import bind_crontab
from sql.binder.patterns.advice import advise
from sql.binder.patterns.pattern_expressions import PatternExpressions, Visible, is_above
from sql.binder.patterns.tags import PatternTags
from sql.binder.place import Place
from sql.binder.scope import Site
from sql.plan import pattern_plan as plans
from sql.plan.bound import Bound, Const
from sql.plan.pattern_plan import PatternPlan, StepPlan
from sql.plan.rewriting import with_sources
from sql.record import replace
from sql.types import Type

FILTER = Place("a filter of a pattern", aliases=False, analytics=False)


class PatternBinder:
    """Binds one pattern: its nodes become steps of the plan."""

    def __init__(self, clause: ast.PatternClause, site: Site) -> None:
        self.clause = clause
        self.site = site
        self.problems = site.problems
        self.tags = PatternTags(clause.root, site)
        self.expressions = PatternExpressions(self.tags, site)

    def bind(self) -> PatternPlan:
        """The plan; problems are reported, never raised."""
        root, _ = self._bind(self.clause.root, {})
        if not self.problems.errors:
            advise(self.clause.root, self.problems)
        tags = tuple(self.tags.by_name.values())
        windows = tuple(name for name, stream in self.tags.streams.items() if stream.is_relation)
        return PatternPlan(root, tags, self.clause.suppress, self.clause.discard, self.site.text, windows)

    def refuse_annotations(self, where: str) -> None:
        """Report annotations of the pattern, which compare the matches of a pattern that
        stands alone in FROM."""
        if self.clause.suppress or self.clause.discard:
            name = "@SuppressOverlappingMatches" if self.clause.suppress else "@DiscardPartialsOnMatch"
            self.problems.error(
                "B824",
                f"{name} has no effect {where}",
                self.clause.span,
                "insert the matches into a stream first",
            )

    # --- nodes ----------------------------------------------------------------------------------------------

    @singledispatchmethod
    def _bind(self, node: object, visible: Visible) -> tuple[StepPlan, Visible]:
        """The plan of a node, and the tags it contributes to what stands to its right."""
        raise TypeError(f"no step for a {type(node).__name__}")

    @_bind.register
    def _(self, node: ast.FilterAtom, visible: Visible) -> tuple[StepPlan, Visible]:
        binder = self.expressions.binder(visible, own=node)
        condition = binder.condition(node.filter, FILTER)
        self.expressions.note_reads(binder)
        if condition is not None:
            condition = with_sources(condition, self.expressions.numbers())
        tag = None if node.tag is None else self.tags.places[node.tag]
        step = plans.FilterPlan(node.stream, tag, condition, node.consume, span=node.span)
        return step, {} if node.tag is None else {node.tag: False}

    @_bind.register
    def _(self, node: ast.IntervalAtom, visible: Visible) -> tuple[StepPlan, Visible]:
        return plans.IntervalPlan(
            self.expressions.length(node.period, visible, "timer:interval"), span=node.span
        ), {}

    @_bind.register
    def _(self, node: ast.CrontabAtom, visible: Visible) -> tuple[StepPlan, Visible]:
        values = tuple(self._field_of_crontab(field, visible) for field in node.fields)
        known = [
            part if part.value is None else replace(part, text=_known(value), value=None)
            for part, value in zip(node.fields, values, strict=True)
        ]
        fields = bind_crontab(self.site, known, "B802", "timer:at")
        if all(value is None or isinstance(value, Const) for value in values):
            values = ()
        texts = [part.text for part in fields]
        if texts[2].isdecimal() and texts[4].isdecimal():
            self.problems.error(
                "B802",
                "timer:at takes a day of the month or a day of the week, not both",
                node.span,
                "a list, [1, 15], beside a day of the week means either",
            )
        return plans.AtPlan(fields, values, span=node.span), {}

    def _field_of_crontab(self, field: ast.CronField, visible: Visible) -> Bound | None:
        """The number a field of `timer:at` computes; None for a field that says it."""
        value = self.expressions.parameter(field.value, visible)
        if value is not None and not Type.INTEGER.accepts(value.type):
            message = f"a field of timer:at is {Type.INTEGER.value}, not {value.type.value}"
            self.problems.error("B802", message, value.span)
        return value

    @_bind.register
    def _(self, node: ast.ScheduleAtom, visible: Visible) -> tuple[StepPlan, Visible]:
        from sql.calendar.schedule import parse_schedule

        iso, date = (self.expressions.parameter(item, visible) for item in (node.iso, node.date))
        repetitions = self.expressions.parameter(node.repetitions, visible)
        for bound, what, type_ in ((iso, "iso", Type.STRING), (repetitions, "repetitions", Type.INTEGER)):
            if bound is not None and not type_.accepts(bound.type):
                self.problems.error(
                    "B802", f"'{what}' of timer:schedule is {type_.value}, not {bound.type.value}", bound.span
                )
        for bound, parse in ((iso, parse_schedule), (date, parse_schedule)):
            if isinstance(bound, Const) and isinstance(bound.value, str):
                try:
                    parse(bound.value)
                except ValueError as failure:
                    self.problems.error("B802", f"timer:schedule: {failure}", bound.span)
        length = (
            None
            if node.period is None
            else self.expressions.length(node.period, visible, "timer:schedule", zero_allowed=False)
        )
        return plans.SchedulePlan(iso, date, length, repetitions, span=node.span), {}

    @_bind.register
    def _(self, node: ast.FollowedBy, visible: Visible) -> tuple[StepPlan, Visible]:
        steps, seen = [], dict(visible)
        for part in node.steps:
            step, tags = self._bind(part, seen)
            steps.append(step)
            seen |= tags
        maxima = tuple(self.expressions.count(item, visible, "the bound of -[n]>", 1) for item in node.maxima)
        added = {name: is_list for name, is_list in seen.items() if visible.get(name) is not is_list}
        return plans.FollowedByPlan(tuple(steps), maxima, span=node.span), added

    @_bind.register
    def _(self, node: ast.AllOf, visible: Visible) -> tuple[StepPlan, Visible]:
        parts, tags = self._siblings(node.parts, visible)
        return plans.AllOfPlan(parts, span=node.span), tags

    @_bind.register
    def _(self, node: ast.AnyOf, visible: Visible) -> tuple[StepPlan, Visible]:
        parts, tags = self._siblings(node.parts, visible)
        return plans.AnyOfPlan(parts, span=node.span), tags

    def _siblings(
        self, nodes: tuple[ast.PatternNode, ...], visible: Visible
    ) -> tuple[tuple[StepPlan, ...], Visible]:
        """Parts of `and` and `or`, which do not see each other's tags."""
        bound = [self._bind(node, visible) for node in nodes]
        tags: Visible = {}
        for _, found in bound:
            tags |= found
        return tuple(step for step, _ in bound), tags

    @_bind.register
    def _(self, node: ast.Absent, visible: Visible) -> tuple[StepPlan, Visible]:
        operand, tags = self._bind(node.operand, visible)
        return plans.AbsentPlan(operand, span=node.span), tags

    @_bind.register
    def _(self, node: ast.Every, visible: Visible) -> tuple[StepPlan, Visible]:
        operand, tags = self._bind(node.operand, visible)
        keys = tuple(self.expressions.key(key, visible, tags) for key in node.keys)
        length = (
            None if node.period is None else self.expressions.length(node.period, visible, "every-distinct")
        )
        return plans.EveryPlan(operand, keys, length, span=node.span), tags

    @_bind.register
    def _(self, node: ast.Repeat, visible: Visible) -> tuple[StepPlan, Visible]:
        operand, tags = self._bind(node.operand, visible)
        until, stop_tags = (None, {}) if node.until is None else self._bind(node.until, visible)
        low = self.expressions.count(node.low, visible, "the bound of a repeat", 1 if node.exact else 0)
        high = low if node.exact else self.expressions.count(node.high, visible, "the bound of a repeat", 1)
        if until is None and not (node.exact or _is_one_number(low, high)):
            self.problems.error(
                "B803",
                "a repeat with a range needs UNTIL",
                node.span,
                "[n] a for so many, or [low:high] a until b",
            )
        if isinstance(low, Const) and isinstance(high, Const) and is_above(low, high):
            self.problems.error(
                "B803",
                f"the bounds {low.value} and {high.value} of a repeat are the wrong way round",
                node.span,
            )
        places = tuple(self.tags.places[name] for name in tags)
        step = plans.RepeatPlan(operand, until, low, high, places, span=node.span)
        return step, {**dict.fromkeys(tags, True), **stop_tags}

    @_bind.register
    def _(self, node: ast.Within, visible: Visible) -> tuple[StepPlan, Visible]:
        operand, tags = self._bind(node.operand, visible)
        length = self.expressions.length(
            node.period, visible, "timer:within" if node.maximum is None else "timer:withinmax"
        )
        maximum = self.expressions.count(node.maximum, visible, "the number of matches of timer:withinmax", 0)
        return plans.WithinPlan(operand, length, maximum, span=node.span), tags

    @_bind.register
    def _(self, node: ast.While, visible: Visible) -> tuple[StepPlan, Visible]:
        operand, tags = self._bind(node.operand, visible)
        binder = self.expressions.binder({**visible, **tags})
        condition = binder.condition(node.condition, Place("WHILE", aliases=False, analytics=False))
        self.expressions.note_reads(binder)
        assert condition is not None
        return plans.WhilePlan(operand, condition, span=node.span), tags


def _is_one_number(low: Bound | None, high: Bound | None) -> bool:
    """True if both bounds of a repeat are one constant, as in `[2:2]`."""
    return isinstance(low, Const) and isinstance(high, Const) and low.value == high.value


def _known(value: Bound | None) -> str:
    """A field of a crontab as text: the number it is found to be, or any until the timer begins."""
    return str(value.value) if isinstance(value, Const) and value.value.__class__ is int else "*"
