"""FROM: the sources of a SELECT with their patterns and windows, and what is read of each stream."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from sql import syntax as ast
from sql.binder.annotations import keeps_last, reclaim_ms
from sql.binder.binding import BindSubquery, no_subquery
from sql.binder.catalog_names import stream_named
from sql.binder.expressions.expression_binder import ExpressionBinder
from sql.binder.patterns.bind import PatternBinder
from sql.binder.patterns.recognize_binder import RecognizeBinder, refuse_beside
from sql.binder.place import Place
from sql.binder.reads import Reads, note_reads
from sql.binder.relations import lookups
from sql.binder.scope import Scope, Site, SourceScope
from sql.binder.sources import event_time
from sql.binder.windows.derived_columns import derived_columns
from sql.binder.windows.from_clause import bind_windows
from sql.binder.windows.lengths import bind_period
from sql.binder.windows.stream_windows import bind_lot
from sql.catalog.streams import Stream
from sql.plan.bound import TableRead
from sql.plan.clauses import SourcePlan, WindowPlan
from sql.plan.logical import Mode
from sql.plan.pattern_plan import LengthPlan
from sql.plan.recognize_plan import RecognizePlan
from sql.record import replace
from sql.types import Type

NO_SUBQUERY = no_subquery("B209", "in the template of a stream query", "write it in WHERE")

FILTER = Place("a stream's filter", aliases=False, analytics=False, at_arrival=True)

RELATIONS: dict[str, Literal["window", "table", "answer"]] = {
    "window": "window",
    "table": "table",
    "store": "answer",
}
"""What a source is whose rows are not events of a stream; answers of stores are read in subqueries."""


class SourceBinder:
    """Binds the sources of one SELECT.

    lookup_joins  the joins with tables of stores, whose rows the first source's events carry
    streams     the stream of each source
    patterns    the patterns of FROM by their place
    scope       the scope of its expressions: the sources, or the tags of the pattern that is the only source
    read_below  the columns that the windows of a source read from its stream, where others stand behind them
    """

    def __init__(
        self,
        select: ast.Select,
        lookup_joins: Sequence[ast.Join],
        site: Site,
        bind_subquery: BindSubquery,
        *,
        is_trigger: bool,
    ) -> None:
        """`is_trigger`: it is the trigger of a statement that acts."""
        self.select = select
        self.lookup_joins = lookup_joins
        self.site = site
        self.bind_subquery = bind_subquery
        self.read_below: dict[int, set[str] | None] = {}
        self.patterns = {
            place: PatternBinder(source.pattern, site)
            for place, source in enumerate(select.sources)
            if isinstance(source, ast.StreamSource) and source.pattern is not None
        }
        self.matches_alone = bool(self.patterns) and not select.joins and not is_trigger
        """True if the statement reads the matches of one pattern and nothing beside them:
        tags are its sources."""
        self.streams = [self._stream_of(place, source) for place, source in enumerate(select.sources)]
        self.scope = self._tags() if self.matches_alone else self._rows()

    # --- names ----------------------------------------------------------------------------------------------

    def _stream_of(self, place: int, source: ast.Source) -> Stream:
        """The stream of a source; the matches of a pattern are one, with the tags as its columns."""
        pattern = self.patterns.get(place)
        if pattern is not None:
            if not self.matches_alone:
                pattern.refuse_annotations("beside other sources and in a trigger")
            return Stream(source.name, pattern.tags.columns(), declared=pattern.tags.declared())
        return stream_named(self.site, source.name, source.span) or Stream(source.name)

    def _tags(self) -> Scope:
        return Scope(self.site, self.patterns[0].tags.sources())

    def _rows(self) -> Scope:
        """The scope of rows that are composed of the events of all sources."""
        sources = list(map(_seen, self.select.sources, self.streams))
        sources += lookups.scopes(self.lookup_joins, self.site.catalog)
        seen: set[str] = set()
        for source in (*self.select.sources, *(join.source for join in self.lookup_joins)):
            if source.alias in seen:
                message = f"two sources are called '{source.alias}'"
                self.site.problems.error("B205", message, source.span, "give one an alias")
            seen.add(source.alias)
        return Scope(self.site, sources, outer=self.site.outer)

    def _alone(self, place: int) -> ExpressionBinder:
        """A binder that sees one source only, as source 0, or the tags of its pattern:
        what stands inside FROM."""
        scope = self.scope
        if not self.matches_alone:
            scope = Scope(self.site, [self.scope.sources[place]], tables=self.scope.tables)
            scope.reads[0] = self.scope.reads[place]  # the same set: `plan` takes None back, whole events
        return ExpressionBinder(scope, self.bind_subquery)

    # --- plans ----------------------------------------------------------------------------------------------

    def plans(self, mode: Mode) -> tuple[SourcePlan, ...]:
        """The plans of all sources.

        A stream without window that is joined with tables only drives the join:
        nothing else of it makes rows.
        """
        plans = tuple(self.plan(place, source) for place, source in enumerate(self.select.sources))
        tables = sum(plan.relation == "table" for plan in plans)
        if mode != "delta" or len(plans) < 2 or tables != len(plans) - 1:
            return plans
        return tuple(plan if plan.keeps else replace(plan, unidirectional=True) for plan in plans)

    def plan(self, place: int, source: ast.Source) -> SourcePlan:
        """The plan of one source."""
        binder = self._alone(place)
        if isinstance(source, ast.LotSource):
            return self._lot(binder, source, place)
        assert isinstance(source, ast.StreamSource)
        condition = binder.condition(source.filter, FILTER)
        pattern = self.patterns[place].bind() if place in self.patterns else None
        windows = bind_windows(binder, source)
        if not self.matches_alone:
            self.scope.reads[place] = binder.scope.reads[0]
        is_wrong = len(windows) < len(source.windows) or self.site.problems.has("B515")
        if is_wrong:  # what stands behind it may have any columns
            self.scope.sources[place] = replace(self.scope.sources[place], columns=None)
        columns = self._columns_behind(place, () if is_wrong else windows)
        recognize = None
        if source.recognize is not None:
            refuse_beside(self.site.problems, self.select, source.recognize)
            if pattern is None:
                recognize = self._recognize(place, source.recognize)
                columns = recognize.columns
        stream = self.streams[place]
        return SourcePlan(
            source.name,
            source.alias,
            filter=condition,
            windows=windows,
            union=source.retain == "union",
            unidirectional=source.unidirectional,
            reclaim_ms=reclaim_ms(self.site.problems, self.select),
            columns=columns,
            retained_rows=stream.retained_rows,
            pattern=pattern,
            recognize=recognize,
            keeps_last=keeps_last(self.select),
            matches_by_name=pattern is not None and not self.matches_alone,
            relation=RELATIONS.get(stream.kind),
        )

    def _lot(self, binder: ExpressionBinder, source: ast.LotSource, place: int) -> SourcePlan:
        """The plan of a stream query's source. Its template reads the event and nothing that changes."""
        condition = ExpressionBinder(binder.scope, NO_SUBQUERY).condition(source.filter, FILTER)
        if condition is not None and any(isinstance(part, TableRead) for part in condition.walk()):
            message, hint = "a template reads the event alone, no row of a table", "write it in WHERE"
            self.site.problems.error("B209", message, source.span, hint)
        lot = bind_lot(binder, source)
        self.scope.reads[place] = binder.scope.reads[0]
        return SourcePlan(source.name, source.alias, filter=condition, lot=lot)

    def _columns_behind(self, place: int, windows: tuple[WindowPlan, ...]) -> dict[str, Type] | None:
        """The columns behind the windows of a source: the rest of the statement reads what a derived-value
        window posts, and the windows alone have read the stream's own columns."""
        if self.matches_alone:
            return self._columns_behind_matches(windows)
        source = self.scope.sources[place]
        columns = derived_columns(windows, source.columns)
        if columns is None:
            return source.columns
        self.read_below[place] = self._exchange(place, columns)
        return columns

    def _columns_behind_matches(self, windows: tuple[WindowPlan, ...]) -> dict[str, Type] | None:
        """The columns behind the windows over a pattern: its tags are read as sources,
        which is None, or one row."""
        tags = self.patterns[0].tags
        columns = derived_columns(windows, dict.fromkeys(tags.by_name, Type.OBJECT))
        if columns is not None:
            tags.note_tags(self.scope.reads)
            self.scope.sources[:] = [SourceScope("", "", columns)]
            self.scope.reads[:], self.scope.own = [set()], 1
        return columns

    def _exchange(self, place: int, columns: dict[str, Type]) -> set[str] | None:
        """Give a source other columns for the rest of the statement; what was read of it so far."""
        self.scope.sources[place] = replace(self.scope.sources[place], columns=columns, declared={})
        below, self.scope.reads[place] = self.scope.reads[place], set()
        return below

    def _recognize(self, place: int, clause: ast.Recognize) -> RecognizePlan:
        """match_recognize: the rest of the statement reads its measures."""
        recognized = RecognizeBinder(clause, self.scope.sources[place], self.site)

        def length(node: ast.Expr) -> LengthPlan:
            period = bind_period(self._alone(place), node, "'interval'")
            return LengthPlan(period.parts, period.span)

        plan = recognized.bind(length)
        known = self._exchange(place, plan.columns)
        below = None if recognized.reads is None or known is None else known | recognized.reads
        self.read_below.setdefault(place, below)  # columns of a derived-value window are no stream's
        return plan

    # --- reads ----------------------------------------------------------------------------------------------

    def timestamps(self) -> dict[str, tuple[str, str | None]]:
        """The columns of the streams' time stamps, if the statement runs in event time."""
        streams: list[Stream] = []
        for place, stream in enumerate(self.streams):
            pattern = self.patterns.get(place)
            streams += [stream] if pattern is None else pattern.tags.streams.values()
        return event_time.timestamps(self.site, streams, self.select.span)

    def reads(self, timestamps: Iterable[tuple[str, str]]) -> Reads:
        """The columns that are read of each stream, its time stamp among them."""
        found: Reads = {}
        for place, stream in enumerate(self.streams):
            if place not in self.patterns:
                note_reads(found, stream.name, self.read_below.get(place, self.scope.reads[place]))
                _note_checked(found, stream)
        for pattern in self.patterns.values():
            if self.matches_alone:
                pattern.tags.note_tags(self.scope.reads)
            else:
                pattern.tags.note_whole()
            for name, columns in pattern.tags.reads.items():
                note_reads(found, name, columns)
                _note_checked(found, pattern.tags.streams[name])
        for name, column in timestamps:
            note_reads(found, name, {column})
        return found


def _note_checked(found: Reads, stream: Stream) -> None:
    """Columns that each message is checked for must be decoded."""
    if stream.is_strict:
        note_reads(found, stream.name, frozenset(stream.columns or ()))


def _seen(source: ast.Source, stream: Stream) -> SourceScope:
    """A source as names see it; the item of a stream query is the value of the only column."""
    seen = SourceScope.of(stream, source.alias)
    if not isinstance(source, ast.LotSource):
        return seen
    columns = stream.columns or {}
    return replace(seen, scalar=next(iter(columns)) if len(columns) == 1 else None, is_item=True)
