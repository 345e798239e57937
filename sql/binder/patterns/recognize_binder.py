"""Binding match_recognize: what its conditions and measures may read, and the columns its matches have."""

from __future__ import annotations

from collections.abc import Callable
from math import factorial

from sql import syntax as ast
from sql.aggregates import base as aggregates
from sql.binder.binding import no_subquery
from sql.binder.calls.call_arguments import count_of
from sql.binder.calls.call_binder import SCALAR_FORMS
from sql.binder.expressions.expression_binder import ExpressionBinder
from sql.binder.place import Place
from sql.binder.scope import Scope, Site, SourceScope
from sql.errors import Problems, did_you_mean
from sql.plan.bound import AggregateCall, Bound, Const, Read
from sql.plan.pattern_plan import OWN, LengthPlan
from sql.plan.recognize_plan import RecognizePlan, RowVariablePlan
from sql.plan.rewriting import with_sources
from sql.record import replace

MEASURES = Place("MEASURES", aggregates=True, analytics=False, aliases=False)
DEFINE = Place("DEFINE", analytics=False, aliases=False)
PARTITION_BY = Place("PARTITION BY", analytics=False, aliases=False)

NO_SUBQUERY = no_subquery("B804", "in match_recognize")


class RecognizeBinder:
    """Binds one clause over the rows of one source."""

    def __init__(self, clause: ast.Recognize, source: SourceScope, site: Site) -> None:
        self.clause = clause
        self.source = source
        self.site = site
        self.problems = site.problems
        self.reads: set[str] | None = set()
        """The columns read of the source; None: whole rows."""
        self.lists: dict[str, bool] = {}
        """The variables from left to right, each with whether it is a list."""
        _find_lists(clause.pattern, self.lists)
        self.earlier: dict[str, set[str]] = {name: set() for name in self.lists}
        """By variable those that come before it."""
        _find_earlier(clause.pattern, set(), self.earlier)
        self.places = {name: place for place, name in enumerate(self.lists)}
        self.previous: list[int] = []

    def bind(self, length: Callable[[ast.Expr], LengthPlan]) -> RecognizePlan:
        """The plan; problems are reported, never raised."""
        clause = self.clause
        if (places := _places(clause.pattern)) > PLACES_MAX:
            message = f"the pattern, repeats and permutations written out, has {places:,} places"
            hint = f"at most {PLACES_MAX:,}: write A* or A+, and test count(A) of the match"
            self.problems.error("B803", message, clause.pattern.span, hint)
        binder = ExpressionBinder(self._scope({}, own=True), NO_SUBQUERY)
        keys = tuple(binder.bind(key, PARTITION_BY) for key in clause.partition_by)
        self._note(binder.scope)
        conditions = self._conditions()
        variables = tuple(
            RowVariablePlan(name, many, conditions.get(name)) for name, many in self.lists.items()
        )
        measures, found = self._measures()
        columns = {name: value.type for name, value in measures}
        return RecognizePlan(
            clause.pattern,
            variables,
            tuple(measures),
            tuple(found),
            tuple(self.previous),
            tuple(with_sources(key, {len(self.lists): OWN}) for key in keys),
            clause.all_matches,
            clause.skip,
            None if clause.interval is None else length(clause.interval),
            clause.or_terminated,
            columns,
            self.source.columns,
            self.site.text,
        )

    # --- names ----------------------------------------------------------------------------------------------

    def _scope(self, visible: dict[str, bool], *, own: bool) -> Scope:
        """The variables that can be read, with whether they are lists; `own`: the row itself behind them."""
        sources = [self._variable(name, visible.get(name)) for name in self.lists]
        return Scope(self.site, [*sources, self.source] if own else sources)

    def _variable(self, name: str, is_list: bool | None) -> SourceScope:
        if is_list is None:
            return SourceScope("", "", {}, tag="hidden")
        return replace(self.source, alias=name, stream=name, tag="list" if is_list else "event")

    def _note(self, scope: Scope) -> None:
        for reads in scope.reads:
            self.reads = None if reads is None or self.reads is None else self.reads | reads

    # --- conditions -----------------------------------------------------------------------------------------

    def _conditions(self) -> dict[str, Bound]:
        found: dict[str, Bound] = {}
        for item in self.clause.definitions:
            if item.variable not in self.lists:
                self.problems.error(
                    "B808",
                    f"'{item.variable}' is no variable of the pattern",
                    item.span,
                    did_you_mean(item.variable, self.lists),
                )
            elif item.variable in found:
                self.problems.error(
                    "B808", f"'{item.variable}' is defined twice", item.span, "join them with AND"
                )
            elif not self._reads_later(item):
                found[item.variable] = self._condition(item)
        return found

    def _reads_later(self, item: ast.Definition) -> bool:
        """Report the variables in a condition that cannot have met a row before; whether there are some."""
        earlier = self.earlier[item.variable] | {item.variable}
        later = self.lists.keys() - earlier
        nodes = [node for node in item.condition.walk() if isinstance(node, ast.Column)]
        wrong = [node for node in nodes if (node.table or node.name) in later]
        for node in wrong:
            self.problems.error(
                "B808",
                f"'{node.table or node.name}' does not come before '{item.variable}' in the pattern",
                node.span,
                f"what can be read here: {', '.join(sorted(earlier))}",
            )
        return bool(wrong)

    def _condition(self, item: ast.Definition) -> Bound:
        """A condition: the variable itself is the row that is tested, and `prev` a row before it. A column
        without a variable is that of the row that is tested."""
        earlier = self.earlier[item.variable] - {item.variable}
        scope = self._scope({name: self.lists[name] for name in earlier} | {item.variable: False}, own=False)
        place = self.places[item.variable]
        scope.bare = (place,)
        binder = _DefinitionBinder(scope, place, len(self.lists), self.previous)
        condition = binder.condition(item.condition, DEFINE)
        self._note(scope)
        assert condition is not None
        return with_sources(condition, {place: OWN})

    # --- measures -------------------------------------------------------------------------------------------

    def _measures(self) -> tuple[list[tuple[str, Bound]], list[tuple[AggregateCall, int]]]:
        scope = self._scope(self.lists, own=False)
        binder = _MeasureBinder(scope, rows=[self._variable(name, False) for name in self.lists])
        measures: list[tuple[str, Bound]] = []
        for item in self.clause.measures:
            if any(item.name == name for name, _ in measures):
                self.problems.error("B206", f"two columns are called '{item.name}'", item.span)
            measures.append((item.name, binder.bind(item.value, MEASURES)))
        self._note(scope)
        return measures, [(call, self._only_variable(call)) for call in binder.aggregates]

    def _only_variable(self, call: AggregateCall) -> int:
        """The variable of several rows that an aggregate goes over; others that it reads have one row."""
        if call.group_by is not None:
            message = "an aggregate of measures has no keys of its own"
            self.problems.error("B809", message, call.span, "partition by them, or filter: condition")
        parts = [part for arg in (*call.args, *([call.filter] if call.filter else [])) for part in arg.walk()]
        many = list(self.lists.values())
        read = {part.source for part in parts if isinstance(part, Read) and many[part.source]}
        if len(read) != 1:
            self.problems.error(
                "B809",
                f"{call.definition.name}() reads one variable that takes several rows",
                call.span,
                "a variable with *, +, {n} or in a repeated group; others beside it take one row",
            )
            return 0
        return read.pop()


class _MeasureBinder(ExpressionBinder):
    """Inside an aggregate a variable stands for each of its rows, outside for the list of them."""

    def __init__(self, scope: Scope, rows: list[SourceScope]) -> None:
        super().__init__(scope, NO_SUBQUERY)
        self.rows = rows

    def call(self, node: ast.Call, place: Place) -> Bound:
        is_scalar = node.name in SCALAR_FORMS and len(node.args) > 1
        if is_scalar or aggregates.lookup(node.name) is None or not place.aggregates:
            return super().call(node, place)
        lists, self.scope.sources = self.scope.sources, self.rows
        try:
            return super().call(node, place)
        finally:
            self.scope.sources = lists

    def tags_shown(self, call: AggregateCall) -> None:
        """No tags: the events that an aggregate returns are rows of one variable."""


class _DefinitionBinder(ExpressionBinder):
    """`prev(V.x [, n])` reads the row n before the one that is tested."""

    def __init__(self, scope: Scope, variable: int, width: int, offsets: list[int]) -> None:
        """`variable`: the place of the one that is defined, among `width`. Rows at `offsets` before it stand
        behind them."""
        super().__init__(scope, NO_SUBQUERY)
        self.variable = variable
        self.width = width
        self.offsets = offsets

    def call(self, node: ast.Call, place: Place) -> Bound:
        if node.name != "prev" or not 1 <= len(node.args) <= 2:
            return super().call(node, place)
        offset = count_of(self, self.bind(node.args[1], place)) if len(node.args) == 2 else Const(1)
        if offset is None:
            self.problems.error("B323", "prev() needs a constant number of rows", node.span)
            offset = Const(1)
        if offset.value not in self.offsets:
            self.offsets.append(offset.value)
        source = self.width + self.offsets.index(offset.value)
        row = replace(self.scope.sources[self.variable], alias="", stream="")  # a field of it may be read
        self.scope.sources[self.scope.own :] = [row] * len(self.offsets)
        value = self.bind(node.args[0], place)
        if any(isinstance(part, Read) and part.source != self.variable for part in value.walk()):
            self.problems.error("B323", "prev() reads the variable that is defined", node.span)
        return with_sources(value, {self.variable: source})


PLACES_MAX = 5000
"""The most places of a pattern once its repeats and permutations are written out."""


def _places(pattern: ast.Node) -> int:
    """The number of places of a pattern once its repeats and permutations are written out."""
    inside = sum(_places(part) for part in pattern.children() if isinstance(part, ast.RowPattern))
    match pattern:
        case ast.RowVariable():
            return 1
        case ast.RowTimes():
            return inside * max(pattern.low, pattern.high or 1)
        case ast.RowPermutation():
            return inside * factorial(len(pattern.parts))
    return inside


def _find_lists(pattern: ast.Node, found: dict[str, bool], *, repeated: bool = False) -> None:
    """Add the variables from left to right, each with whether it is a list: it stands under a repetition
    without end, or several times in one sequence. What stands in alternatives counts once: of several rows
    the last one stays."""
    if isinstance(pattern, ast.RowVariable):
        found[pattern.name] = repeated or pattern.name in found
    elif isinstance(pattern, ast.RowTimes):
        for _ in range(min(pattern.high or 1, 2)):
            _find_lists(pattern.operand, found, repeated=repeated or pattern.high is None)
    elif isinstance(pattern, ast.RowChoice | ast.RowPermutation):
        apart = (
            [pattern.parts]
            if isinstance(pattern, ast.RowPermutation)
            else [(part,) for part in pattern.parts]
        )
        for parts in apart:
            alone: dict[str, bool] = {}
            for one in parts:
                _find_lists(one, alone, repeated=repeated)
            for name, is_list in alone.items():
                found[name] = is_list or found.get(name, False)
    else:
        for part in pattern.children():
            _find_lists(part, found, repeated=repeated)


def _find_earlier(pattern: ast.Node, before: set[str], found: dict[str, set[str]]) -> None:
    """Add to each variable of a pattern those that may have met a row: `before` the pattern, and in it."""
    if isinstance(pattern, ast.RowVariable):
        found[pattern.name] |= before
        return
    if isinstance(pattern, ast.RowTimes) and max(pattern.low, pattern.high or 0) > 1:
        before = before | _names(pattern)
    for part in pattern.children():
        beside = _names(pattern) if isinstance(pattern, ast.RowPermutation) else set()
        _find_earlier(part, before | beside, found)
        if isinstance(pattern, ast.RowSequence):
            before = before | _names(part)


def _names(pattern: ast.Node) -> set[str]:
    return {part.name for part in pattern.walk() if isinstance(part, ast.RowVariable)}


def refuse_beside(problems: Problems, select: ast.Select, clause: ast.Recognize) -> None:
    """Report what cannot stand beside match_recognize, which reads one stream and makes rows of its own."""
    if select.joins:
        problems.error(
            "B809",
            "match_recognize cannot stand on a join",
            clause.span,
            "insert the join into a stream before",
        )
    if any(isinstance(source, ast.StreamSource) and source.pattern is not None for source in select.sources):
        problems.error(
            "B809",
            "match_recognize cannot stand on a pattern",
            clause.span,
            "insert the matches of the pattern into a stream before",
        )
    for name, node in (("WHERE", select.where), ("GROUP BY", next(iter(select.group_by), None))):
        if node is not None:
            problems.error(
                "B809",
                f"{name} cannot stand beside match_recognize",
                node.span,
                "put conditions into DEFINE, or insert the matches into a stream",
            )
