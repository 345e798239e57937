"""FROM: the sources of a SELECT with their patterns and windows, and what is read of each stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from sql import syntax as ast
from sql.algebra.windows import catalog as windows
from sql.binder.binding import Place
from sql.binder.expressions.expression_binder import ExpressionBinder
from sql.binder.patterns.bind import PatternBinder
from sql.binder.patterns.recognize_binder import RecognizeBinder, refuse_join
from sql.binder.relations import lookups
from sql.binder.scope import Scope, SourceScope
from sql.binder.windows.from_clause import bind_windows
from sql.binder.windows.lengths import bind_period
from sql.binder.windows.stream_windows import bind_lot
from sql.catalog.streams import Catalog, Stream
from sql.errors import Problems, did_you_mean
from sql.plan.bound import Bound
from sql.plan.clauses import SourcePlan, key_names
from sql.plan.context_plan import ContextPlan
from sql.plan.logical import Mode
from sql.plan.options import RuleOptions
from sql.plan.pattern_plan import LengthPlan
from sql.plan.recognize_plan import RecognizePlan
from sql.record import replace
from sql.types import Type

FILTER = Place("a stream's filter", aliases=False, analytics=False)

Subquery = ast.Subquery | ast.Quantified


RELATIONS: dict[str, Literal["window", "table", "answer"]] = {
    "window": "window",
    "table": "table",
    "asked": "answer",
}
"""What a source is whose rows are not events of a stream; answers of stores are read in subqueries."""


class SourceBinder:
    """Binds the sources of one SELECT.

    scope       the scope of its expressions: the sources, or the tags of the pattern that is the only source
    asked       the joins with tables of stores, whose rows the first source's events carry
    read_below  the columns that the windows of a source read from its stream, where a derived-value window
                has replaced the columns
    """

    def __init__(
        self,
        select: ast.Select,
        asked: Sequence[ast.Join],
        catalog: Catalog,
        options: RuleOptions,
        text: str,
        problems: Problems,
        context: ContextPlan | None,
        outer: Scope | None,
        bind_subquery: Callable[[Subquery, Scope], Bound],
        *,
        is_trigger: bool,
    ) -> None:
        self.select = select
        self.asked = asked
        self.catalog = catalog
        self.options = options
        self.text = text
        self.problems = problems
        self.context = context
        self.outer = outer
        self.bind_subquery = bind_subquery
        self.is_trigger = is_trigger
        self.all = ([select.source] if select.source else []) + [join.source for join in select.joins]
        self.read_below: dict[int, set[str] | None] = {}
        self.patterns: dict[int, PatternBinder] = {}
        """The patterns of FROM by their place."""
        self.streams = [self._stream_of(i, source) for i, source in enumerate(self.all)]
        self.scope = self._scope()

    def _stream_of(self, index: int, source: ast.Source) -> Stream:
        if isinstance(source, ast.StreamSource) and source.pattern is not None:
            pattern = PatternBinder(
                source.pattern,
                self.catalog,
                self.options,
                self.text,
                self.problems,
                Scope(self.catalog, self.problems, [], context=self.context),
            )
            self.patterns[index] = pattern
            if self.select.joins or self.is_trigger:
                pattern.refuse_annotations("beside other sources and in a trigger")
            return Stream(source.name, pattern.tags.columns(), declared=pattern.tags.declared())
        stream = self.catalog.streams.get(source.name)
        if stream is None:
            self.problems.error(
                "B202",
                f"unknown stream '{source.name}'",
                source.span,
                did_you_mean(source.name, self.catalog.streams)
                or "declare it with CREATE STREAM or under streams:",
            )
            return Stream(source.name)
        return stream

    def _scope(self) -> Scope:
        if self.matches_alone:
            return Scope(self.catalog, self.problems, self.patterns[0].tags.sources(), context=self.context)
        scopes = []
        for source, stream in zip(self.all, self.streams, strict=True):
            columns = stream.columns
            scalar = next(iter(columns)) if columns is not None and len(columns) == 1 else None
            is_item = isinstance(source, ast.LotSource)
            declared = {column.name: column.type for column in stream.declared}
            scopes.append(
                SourceScope(
                    source.alias, source.name, columns, scalar if is_item else None, is_item, declared
                )
            )
        scopes += lookups.scopes(self.asked, self.catalog)
        scope = Scope(self.catalog, self.problems, scopes, context=self.context, outer=self.outer)
        seen: set[str] = set()
        for source in (*self.all, *(join.source for join in self.asked)):
            if source.alias in seen:
                self.problems.error(
                    "B205", f"two sources are called '{source.alias}'", source.span, "give one an alias"
                )
            seen.add(source.alias)
        return scope

    @property
    def matches_alone(self) -> bool:
        """True if the statement reads the matches of one pattern and nothing beside them:
        tags are its sources."""
        return bool(self.patterns) and not self.select.joins and not self.is_trigger

    def plan(self, index: int, source: ast.Source) -> SourcePlan:
        if isinstance(source, ast.LotSource):
            return SourcePlan(source.name, source.alias, lot=bind_lot(self._alone(index), source))
        assert isinstance(source, ast.StreamSource)
        binder = self._alone(index)
        binder.scope.at_arrival = True
        condition = binder.condition(source.filter, FILTER)
        binder.scope.at_arrival = False
        pattern = self.patterns[index].bind() if index in self.patterns else None
        plans = bind_windows(binder, source)
        columns = self._derive(index, plans)
        stream = self.streams[index]
        if pattern is not None:
            by_name = not self.matches_alone
            return SourcePlan(
                "",
                source.alias,
                windows=plans,
                union=source.retain == "union",
                unidirectional=source.unidirectional,
                reclaim_ms=self._reclaim(),
                columns=columns,
                pattern=pattern,
                matches_by_name=by_name,
                keeps_last=self._keeps_last(),
            )
        kind = RELATIONS.get(stream.kind)
        recognize = None
        if source.recognize is not None:
            recognize = self._recognize(index, source.recognize)
            columns = recognize.columns
        return SourcePlan(source.name, source.alias, condition, plans, source.retain == "union", None,
                          source.unidirectional, self._reclaim(), columns, stream.retained_rows,
                          recognize=recognize, keeps_last=self._keeps_last(), relation=kind)  # fmt: skip

    def _recognize(self, index: int, clause: ast.Recognize) -> RecognizePlan:
        """match_recognize: the rest of the statement reads its measures."""
        if self.select.joins:
            refuse_join(self.problems, clause.span)
        scope = self.scope.sources[index]
        recognized = RecognizeBinder(clause, scope, self.catalog, self.text, self.problems)

        def length(node: ast.Expr) -> LengthPlan:
            period = bind_period(self._alone(index), node, "'interval'")
            return LengthPlan(period.parts, period.span)

        plan = recognized.bind(length)
        known = self.scope.reads[index]
        below = None if recognized.reads is None or known is None else known | recognized.reads
        self.read_below[index], self.scope.reads[index] = below, set()
        self.scope.sources[index] = replace(scope, columns=plan.columns, declared={})
        for node, name in (
            (self.select.where, "WHERE"),
            *((item, "GROUP BY") for item in self.select.group_by[:1]),
        ):
            if node is not None:
                self.problems.error(
                    "B809",
                    f"{name} cannot stand beside match_recognize",
                    node.span,
                    "put conditions into DEFINE, or insert the matches into a stream",
                )
        return plan

    def _keeps_last(self) -> bool:
        return any(note.name == "iterableunbound" for note in self.select.annotations)

    def _alone(self, index: int) -> ExpressionBinder:
        """A binder that sees one source only, as source 0, or the tags of its pattern:
        what stands inside FROM."""
        if self.matches_alone:
            tags = ExpressionBinder(self.scope, self.bind_subquery)
            tags.text, tags.epl = self.text, True
            return tags
        scope = Scope(
            self.catalog,
            self.problems,
            [self.scope.sources[index]],
            context=self.context,
            tables=self.scope.tables,
        )
        binder = ExpressionBinder(scope, self.bind_subquery)
        binder.text, binder.epl = self.text, True
        self.scope.reads[index] = scope.reads[0] = self.scope.reads[index]
        return binder

    def _derive(self, index: int, plans: tuple[Any, ...]) -> dict[str, Type] | None:
        """The columns behind the windows: derived-value windows replace the stream's by their own."""
        derived = next(
            (plan for plan in plans if (windows.lookup(plan.name) or plan).role == "derived"), None
        )
        if self.matches_alone:
            return self._derive_of_matches(plans, derived)
        scope = self.scope.sources[index]
        if derived is None:
            return scope.columns
        columns = self._derived_columns(plans, derived, scope.columns)
        # The derived row is what the rest of the statement reads; the stream's own columns
        # were read by the windows.
        self.scope.sources[index] = replace(scope, columns=columns, declared={})
        self.read_below[index], self.scope.reads[index] = self.scope.reads[index], set()
        return columns

    def _derive_of_matches(self, plans: tuple[Any, ...], derived: object) -> dict[str, Type] | None:
        """The columns behind the windows over a pattern: its tags are read as sources,
        which is None, or one row."""
        if derived is None:
            return None
        columns = self._derived_columns(
            plans, derived, dict.fromkeys(self.patterns[0].tags.by_name, Type.OBJECT)
        )
        self.patterns[0].tags.note_tags(self.scope.reads)
        self.scope.sources[:] = [SourceScope("", "", columns)]
        self.scope.reads[:] = [set()]
        return columns

    @staticmethod
    def _derived_columns(
        plans: tuple[Any, ...], derived: Any, original: dict[str, Type] | None
    ) -> dict[str, Type]:
        """The columns of the rows that a derived-value window posts."""
        columns: dict[str, Type] = {}
        if plans[0].name == "groupwin" and not any(plan.name == "merge" for plan in plans):
            columns |= {
                name: key.type
                for name, key in zip(key_names(plans[0]), plans[0].arguments["keys"], strict=True)
            }
        columns |= dict.fromkeys(windows.posted_columns(derived.name), Type.NUMBER)
        for name, bound in derived.arguments.get("extras", ()):
            columns |= {name: bound.type} if name else (original or {})
        return columns

    def _reclaim(self) -> tuple[int, int] | None:
        hints: dict[str, str] = {}
        for note in self.select.annotations:
            if note.name == "hint" and isinstance(note.value, str):
                hints |= dict(part.strip().split("=", 1) for part in note.value.split(",") if "=" in part)
        if "reclaim_group_aged" not in hints:
            return None
        try:
            age = float(hints["reclaim_group_aged"])
            every = float(hints.get("reclaim_group_freq", age))
        except ValueError:
            self.problems.error(
                "B526", "reclaim_group_aged and reclaim_group_freq are numbers of seconds", self.select.span
            )
            return None
        return round(age * 1000), round(every * 1000)

    def timestamps(self) -> dict[str, tuple[str, str | None]]:
        """The time stamps of the streams, if the rule runs in event time: all have one, or none.

        A rule that does not say `isEventTime` runs in processing time where a stream has none.
        """
        wanted = self.options.event_time
        flowing = {
            stream.name: stream
            for index, source in enumerate(self.streams)
            for stream in (
                self.patterns[index].tags.streams.values() if index in self.patterns else (source,)
            )
            if stream.kind == "stream"
        }
        found = {
            s.name: (s.timestamp, s.timestamp_format) for s in flowing.values() if s.timestamp is not None
        }
        if wanted is False or not (found or wanted):
            return {}
        without = [name for name in flowing if name not in found]
        if without and wanted is None:
            self.problems.warn(
                "B709",
                f"the rule runs in processing time: stream '{without[0]}' has no timestamp column",
                self.select.span,
                'declare it: WITH (…, TIMESTAMP="ts"); or say so with isEventTime: false',
            )
            return {}
        for name in without:
            self.problems.error(
                "B403",
                f"event time needs a timestamp column, and stream '{name}' has none",
                self.select.span,
                'declare it: WITH (…, TIMESTAMP="ts"), or set isEventTime: false',
            )
        for stream, reads in zip(self.streams, self._stream_reads(), strict=False):
            if stream.name in found and reads is not None:
                reads.add(found[stream.name][0])
        for pattern in self.patterns.values():
            for name in pattern.tags.reads.keys() & found.keys():
                pattern.tags.note(name, {found[name][0]})
        return found

    def _stream_reads(self) -> list[set[str] | None]:
        """The columns read of each source's stream: behind a derived-value window the
        rest reads other columns."""
        return [self.read_below.get(index, reads) for index, reads in enumerate(self.scope.reads)]

    def reads(self) -> Iterator[tuple[str, frozenset[str] | None]]:
        """The columns that are read of each stream; None: whole events. A stream may come several times."""
        for index, (stream, reads) in enumerate(zip(self.streams, self._stream_reads(), strict=False)):
            if index not in self.patterns:
                # Checked columns must be decoded.
                checked = frozenset(stream.columns or ()) if stream.is_strict else frozenset()
                yield stream.name, None if reads is None else checked | reads
        for pattern in self.patterns.values():
            yield from self._pattern_reads(pattern).items()

    def _pattern_reads(self, pattern: PatternBinder) -> dict[str, frozenset[str] | None]:
        """The columns that a pattern and the statement over its matches read of its streams;
        of a joined one whole events."""
        if self.matches_alone:
            pattern.tags.note_tags(self.scope.reads)
        else:
            pattern.tags.note_whole()
        checked = {
            name: frozenset(stream.columns or ()) if stream.is_strict else frozenset()
            for name, stream in pattern.tags.streams.items()
        }
        return {
            name: None if reads is None else checked[name] | reads
            for name, reads in pattern.tags.reads.items()
        }

    def driving(self, mode: Mode, sources: tuple[SourcePlan, ...]) -> tuple[SourcePlan, ...]:
        """A stream without window that is joined with tables only drives the join: nothing
        else of it makes rows."""
        tables = sum(source.relation == "table" for source in sources)
        if mode != "delta" or len(sources) < 2 or tables != len(sources) - 1:
            return sources
        return tuple(source if source.keeps else replace(source, unidirectional=True) for source in sources)
