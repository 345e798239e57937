"""Binding patterns: tags get their types, filters and parameters their meaning; what cannot work is refused.

What an expression may read: a filter its own event and the tags to the left of an arrow; `while` and the keys
of `every-distinct` also the tags of their own operand; everything else the tags to the left.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatchmethod
from typing import Any

from sql import syntax as ast
from sql.binder.expressions import ExpressionBinder, Place
from sql.binder.pattern_advice import advise
from sql.binder.scope import Scope, SourceScope
from sql.calendar.crontab import Crontab
from sql.calendar.period import Period
from sql.catalog.streams import Catalog, Stream
from sql.errors import Problems, did_you_mean
from sql.plan import patterns as plans
from sql.plan.bound import Bound, Const, Read
from sql.plan.options import RuleOptions
from sql.plan.patterns import OWN, LengthPlan, PatternPlan, StepPlan, Tag
from sql.record import replace
from sql.types import Type

FILTER = Place("a filter of a pattern", aliases=False, analytics=False)
PARAMETER = Place("a parameter of a pattern", aliases=False, analytics=False)

Visible = dict[str, bool]
"""The tags an expression may read, with whether they are lists where it stands."""


class PatternBinder:
    """Binds one pattern; `streams` and `reads` say what it reads of which stream (None: whole events)."""

    def __init__(
        self,
        clause: ast.PatternClause,
        catalog: Catalog,
        options: RuleOptions,
        text: str,
        problems: Problems,
        around: Scope | None = None,
    ) -> None:
        """`around`: where the pattern stands, in the partitions of a context or in the definition of one."""
        self.clause = clause
        self.catalog = catalog
        self.options = options
        self.text = text
        self.problems = problems
        self.around = around
        self.streams: dict[str, Stream] = {}
        self.reads: dict[str, set[str] | None] = {}
        self.tags: dict[str, Tag] = {}
        self._collect(clause.root, in_repeat=False)
        self.places = {name: place for place, name in enumerate(self.tags)}

    def bind(self) -> PatternPlan:
        """The plan; problems are reported, never raised."""
        root, _ = self._bind(self.clause.root, {})
        if not self.problems.errors:
            advise(self.clause.root, self.problems)
        return PatternPlan(
            root, tuple(self.tags.values()), self.clause.suppress, self.clause.discard, self.text
        )

    # --- as the statement around it sees it -----------------------------------------------------------------

    def tag_sources(self) -> list[SourceScope]:
        """The tags as sources of a statement that reads nothing but the matches."""
        return [self.source(tag, tag.is_list) for tag in self.tags.values()]

    def columns(self) -> dict[str, Type]:
        """The tags as columns of a source that is joined with others."""
        return {name: Type.ARRAY if tag.is_list else Type.OBJECT for name, tag in self.tags.items()}

    def declared(self) -> tuple[ast.ColumnDefinition, ...]:
        """The full types of these columns, where the streams declare them."""
        found = []
        for name, tag in self.tags.items():
            columns = tuple(ast.ColumnDefinition(column, type_) for column, type_ in tag.declared)
            event = ast.ColumnType("struct", fields=columns)
            found.append(ast.ColumnDefinition(name, ast.ColumnType("array", event) if tag.is_list else event))
        return tuple(found)

    def note_tags(self, reads: list[set[str] | None]) -> None:
        """What the statement reads of the tags, in their order."""
        for tag, columns in zip(self.tags.values(), reads, strict=False):
            self.note(tag.stream, columns)

    def note_whole(self) -> None:
        """Whole events of every tag are read."""
        for tag in self.tags.values():
            self.note(tag.stream, None if tag.columns is None else set(tag.columns))

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

    # --- tags -----------------------------------------------------------------------------------------------

    def _collect(self, node: ast.PatternNode, *, in_repeat: bool) -> None:
        """The streams and tags of a pattern, in order of appearance."""
        if isinstance(node, ast.FilterAtom):
            self._collect_filter(node, in_repeat=in_repeat)
        for child in node.children():
            if isinstance(child, ast.PatternNode):
                repeated = isinstance(node, ast.Repeat) and child is node.operand
                self._collect(child, in_repeat=in_repeat or repeated)

    def _collect_filter(self, node: ast.FilterAtom, *, in_repeat: bool) -> None:
        stream = self._stream(node)
        self.reads.setdefault(stream.name, set())
        if node.tag is None:
            return
        declared = tuple((column.name, column.type) for column in stream.declared)
        tag = Tag(node.tag, stream.name, in_repeat, stream.columns, declared)
        known = self.tags.setdefault(node.tag, tag)
        if known is tag:
            return
        if known.stream != tag.stream:
            self.problems.error(
                "B801",
                f"the tag '{node.tag}' stands for events of '{known.stream}' and of '{tag.stream}'",
                node.span,
                "give each its own tag",
            )
        elif known.is_list or tag.is_list:
            self.problems.error(
                "B801",
                f"the tag '{node.tag}' is a list, made by a repeat, and is used again",
                node.span,
                "give each its own tag",
            )

    def _stream(self, node: ast.FilterAtom) -> Stream:
        stream = self.catalog.streams.get(node.stream)
        if stream is None:
            if node.stream not in self.streams:
                self.problems.error(
                    "B202",
                    f"unknown stream '{node.stream}'",
                    node.span,
                    did_you_mean(node.stream, self.catalog.streams)
                    or "declare it with CREATE STREAM or under streams:",
                )
            stream = Stream(node.stream)
        elif stream.kind != "stream":
            self.problems.error("B533", f"table '{stream.name}' has no events for a pattern", node.span)
        self.streams[stream.name] = stream
        return stream

    # --- nodes ----------------------------------------------------------------------------------------------

    @singledispatchmethod
    def _bind(self, node: Any, visible: Visible) -> tuple[StepPlan, Visible]:
        """The plan of a node, and the tags it contributes to what stands to its right."""
        raise NotImplementedError(type(node))

    @_bind.register
    def _(self, node: ast.FilterAtom, visible: Visible) -> tuple[StepPlan, Visible]:
        binder = self._expressions(visible, own=node)
        condition = binder.condition(node.filter, FILTER)
        self._note_reads(binder)
        if condition is not None:
            condition = with_sources(condition, self._numbers())
        tag = None if node.tag is None else self.places[node.tag]
        step = plans.FilterPlan(node.stream, tag, condition, node.consume, span=node.span)
        return step, {} if node.tag is None else {node.tag: False}

    @_bind.register
    def _(self, node: ast.IntervalAtom, visible: Visible) -> tuple[StepPlan, Visible]:
        return plans.IntervalPlan(self._length(node.period, visible, "timer:interval"), span=node.span), {}

    @_bind.register
    def _(self, node: ast.CrontabAtom, visible: Visible) -> tuple[StepPlan, Visible]:
        texts = [part.text for part in node.fields]
        try:
            Crontab.parse(texts, self.options.zone_info())
        except ValueError as failure:
            self.problems.error("B802", f"timer:at: {failure}", node.span)
        if texts[2].isdecimal() and texts[4].isdecimal():
            self.problems.error(
                "B802",
                "timer:at takes a day of the month or a day of the week, not both",
                node.span,
                "a list, [1, 15], beside a day of the week means either",
            )
        return plans.CrontabPlan(node.fields, span=node.span), {}

    @_bind.register
    def _(self, node: ast.ScheduleAtom, visible: Visible) -> tuple[StepPlan, Visible]:
        from sql.calendar.schedule import parse_schedule

        iso, date = (self._parameter(item, visible) for item in (node.iso, node.date))
        repetitions = self._parameter(node.repetitions, visible)
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
        length = None if node.period is None else self._length(node.period, visible, "timer:schedule")
        return plans.SchedulePlan(iso, date, length, repetitions, span=node.span), {}

    @_bind.register
    def _(self, node: ast.FollowedBy, visible: Visible) -> tuple[StepPlan, Visible]:
        steps, seen = [], dict(visible)
        for part in node.steps:
            step, tags = self._bind(part, seen)
            steps.append(step)
            seen |= tags
        maxima = tuple(self._count(item, visible, "the bound of -[n]>", 1) for item in node.maxima)
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
        keys = tuple(self._key(key, visible, tags) for key in node.keys)
        length = None if node.period is None else self._length(node.period, visible, "every-distinct")
        return plans.EveryPlan(operand, keys, length, span=node.span), tags

    @_bind.register
    def _(self, node: ast.Repeat, visible: Visible) -> tuple[StepPlan, Visible]:
        operand, tags = self._bind(node.operand, visible)
        until, stop_tags = (None, {}) if node.until is None else self._bind(node.until, visible)
        low = self._count(node.low, visible, "the bound of a repeat", 1)
        high = low if node.exact else self._count(node.high, visible, "the bound of a repeat", 1)
        if until is None and not node.exact:
            self.problems.error(
                "B803",
                "a repeat with a range needs UNTIL",
                node.span,
                "[n] a for so many, or [low:high] a until b",
            )
        if isinstance(low, Const) and isinstance(high, Const) and _is_above(low, high):
            self.problems.error(
                "B803",
                f"the bounds {low.value} and {high.value} of a repeat are the wrong way round",
                node.span,
            )
        places = tuple(self.places[name] for name in tags)
        step = plans.RepeatPlan(operand, until, low, high, places, span=node.span)
        return step, {**dict.fromkeys(tags, True), **stop_tags}

    @_bind.register
    def _(self, node: ast.Within, visible: Visible) -> tuple[StepPlan, Visible]:
        operand, tags = self._bind(node.operand, visible)
        length = self._length(
            node.period, visible, "timer:within" if node.maximum is None else "timer:withinmax"
        )
        maximum = self._count(node.maximum, visible, "the number of matches of timer:withinmax", 0)
        return plans.WithinPlan(operand, length, maximum, span=node.span), tags

    @_bind.register
    def _(self, node: ast.While, visible: Visible) -> tuple[StepPlan, Visible]:
        operand, tags = self._bind(node.operand, visible)
        binder = self._expressions({**visible, **tags})
        condition = binder.condition(node.condition, Place("WHILE", aliases=False, analytics=False))
        self._note_reads(binder)
        assert condition is not None
        return plans.WhilePlan(operand, condition, span=node.span), tags

    # --- expressions ----------------------------------------------------------------------------------------

    def _expressions(self, visible: Visible, own: ast.FilterAtom | None = None) -> ExpressionBinder:
        """A binder that sees some tags, and for a filter the event it tests as the source behind all tags."""
        sources = [self.source(tag, visible.get(name)) for name, tag in self.tags.items()]
        if own is not None:
            stream = self.streams[own.stream]
            declared = {column.name: column.type for column in stream.declared}
            sources.append(SourceScope(own.tag or own.stream, own.stream, stream.columns, declared=declared))
        scope = Scope(self.catalog, self.problems, sources)
        if self.around is not None:
            scope.context, scope.places = self.around.context, self.around.places
        binder = ExpressionBinder(scope, self._no_subquery)
        binder.text, binder.epl = self.text, True
        return binder

    @staticmethod
    def source(tag: Tag, is_list: bool | None) -> SourceScope:
        """A tag as a source of names; `is_list` None: it cannot be read here."""
        if is_list is None:
            return SourceScope("", "", {}, tag="hidden")
        return SourceScope(
            tag.name, tag.name, tag.columns, declared=dict(tag.declared), tag="list" if is_list else "event"
        )

    def _numbers(self) -> dict[int, int]:
        """Source numbers of a filter's scope as the plan has them: the own event behind the tags is `OWN`."""
        return {len(self.tags): OWN}

    def _note_reads(self, binder: ExpressionBinder) -> None:
        """Remember what an expression reads of the streams."""
        streams = [tag.stream for tag in self.tags.values()] + [
            source.stream for source in binder.scope.sources[-1:]
        ]
        for stream, reads in zip(streams, binder.scope.reads, strict=False):
            self.note(stream, reads)

    def note(self, stream: str, reads: set[str] | None) -> None:
        """So much more is read of a stream."""
        known = self.reads.get(stream, set())
        self.reads[stream] = None if reads is None or known is None else known | reads

    def _no_subquery(self, node: ast.Subquery | ast.Quantified, scope: Scope) -> Bound:
        self.problems.error(
            "B804",
            "a subquery cannot stand in a pattern",
            node.span,
            "put the condition into WHERE, which sees each match",
        )
        return Const(None)

    def _parameter(self, node: ast.Expr | None, visible: Visible) -> Bound | None:
        if node is None:
            return None
        binder = self._expressions(visible)
        bound = binder.bind(node, PARAMETER)
        self._note_reads(binder)
        return bound

    def _count(self, node: ast.Expr | None, visible: Visible, what: str, least: int) -> Bound | None:
        """A number of times."""
        bound = self._parameter(node, visible)
        if bound is None or node is None:
            return None
        if isinstance(bound, Const) and not (_is_count(bound) and bound.value >= least):
            self.problems.error(
                "B803", f"{what} is a whole number of at least {least}, not {bound.value!r}", node.span
            )
        elif not Type.INTEGER.accepts(bound.type):
            self.problems.error("B803", f"{what} is a whole number, not {bound.type.value}", node.span)
        return bound

    def _length(self, node: ast.Expr, visible: Visible, what: str) -> LengthPlan:
        """A length of time; it may be 0."""
        parts = node.parts if isinstance(node, ast.Period) else None
        amounts = [(node, "second")] if parts is None else [(part.amount, part.unit) for part in parts]
        bound: list[tuple[Bound, str]] = []
        for amount, unit in amounts:
            value = self._parameter(amount, visible)
            assert value is not None
            if not Type.NUMBER.accepts(value.type):
                self.problems.error(
                    "B301", f"{what} takes a length of time, not {value.type.value}", node.span
                )
            bound.append((value, unit))
        constants = {unit: value.value for value, unit in bound if isinstance(value, Const)}
        if len(constants) == len(bound) and all(
            value.__class__ in (int, float) for value in constants.values()
        ):
            try:
                Period.of(constants, zero_allowed=True)
            except ValueError as error:
                self.problems.error("B506", f"{what}: {error}", node.span)
        return LengthPlan(tuple(bound), node.span)

    def _key(self, node: ast.Expr, visible: Visible, tags: Visible) -> Bound:
        """A key of `every-distinct`, which must depend on the operand's events."""
        bound = self._parameter(node, {**visible, **tags})
        assert bound is not None
        own = {self.places[name] for name in tags}
        if not any(isinstance(part, Read) and part.source in own for part in bound.walk()):
            self.problems.error(
                "B805",
                "a key of every-distinct depends on a tag of what it repeats",
                node.span,
                "every-distinct(a.dev) a=E",
            )
        return bound


def _is_count(bound: Const) -> bool:
    return bound.value.__class__ is int


def _is_above(low: Const, high: Const) -> bool:
    return _is_count(low) and _is_count(high) and bool(low.value > high.value)


def with_sources(bound: Bound, numbers: dict[int, int]) -> Bound:
    """The expression with its source numbers exchanged."""
    return rewritten(bound, lambda read: replace(read, source=numbers.get(read.source, read.source)))


def rewritten(bound: Bound, change: Callable[[Read], Bound]) -> Bound:
    """The expression with every read of a source changed."""
    from sql.plan.bound import Apply, Enumerate, Op

    if isinstance(bound, Read):
        return change(bound)
    if isinstance(bound, Op | Apply):
        return replace(bound, args=tuple(rewritten(arg, change) for arg in bound.args))
    if isinstance(bound, Enumerate):
        body = None if bound.body is None else rewritten(bound.body, change)
        return replace(bound, base=rewritten(bound.base, change), body=body)
    return bound


__all__ = ["PatternBinder"]
