"""Binding the expressions of a pattern: filters, conditions, counts, lengths of time and keys.

What an expression may read: a filter its own event and the tags to the left of an arrow; `while` and the keys
of `every-distinct` also the tags of their own operand; everything else the tags to the left.
"""

from __future__ import annotations

from sql import syntax as ast
from sql.binder.binding import no_subquery
from sql.binder.expressions.expression_binder import ExpressionBinder
from sql.binder.patterns.tags import PatternTags
from sql.binder.place import Place
from sql.binder.reads import note_reads
from sql.binder.scope import Scope, Site, SourceScope
from sql.binder.windows.lengths import amounts_in, check_amounts, check_count
from sql.plan.bound import Bound, Const, Read
from sql.plan.pattern_plan import OWN, LengthPlan

PARAMETER = Place("a parameter of a pattern", aliases=False, analytics=False)

NO_SUBQUERY = no_subquery("B804", "in a pattern", "put the condition into WHERE, which sees each match")

Visible = dict[str, bool]
"""The tags an expression may read, with whether they are lists where it stands."""


class PatternExpressions:
    """Binds the expressions of one pattern."""

    def __init__(self, tags: PatternTags, site: Site) -> None:
        self.tags = tags
        self.site = site
        self.problems = site.problems

    def binder(
        self, visible: Visible, own: ast.FilterAtom | None = None, bare: Visible | None = None
    ) -> ExpressionBinder:
        """A binder that sees some tags, and for a filter the event it tests as the source behind all tags.
        `bare`: the tags whose columns may stand without the tag; None: all that are one event."""
        sources = [self.tags.source(tag, visible.get(name)) for name, tag in self.tags.by_name.items()]
        if own is not None:
            sources.append(SourceScope.of(self.tags.streams[own.stream], own.tag or own.stream))
        alone = visible if bare is None else bare
        events = tuple(self.tags.places[name] for name, is_list in alone.items() if not is_list)
        return ExpressionBinder(Scope(self.site, sources, bare=events), NO_SUBQUERY)

    def numbers(self) -> dict[int, int]:
        """Source numbers of a filter's scope as the plan has them: the own event behind the tags is `OWN`."""
        return {len(self.tags.by_name): OWN}

    def note_reads(self, binder: ExpressionBinder) -> None:
        """Remember what an expression reads of the streams."""
        streams = [tag.stream for tag in self.tags.by_name.values()] + [
            source.stream for source in binder.scope.sources[-1:]
        ]
        for stream, reads in zip(streams, binder.scope.reads, strict=False):
            note_reads(self.tags.reads, stream, reads)

    def parameter(self, node: ast.Expr | None, visible: Visible, bare: Visible | None = None) -> Bound | None:
        if node is None:
            return None
        binder = self.binder(visible, bare=bare)
        bound = binder.bind(node, PARAMETER)
        self.note_reads(binder)
        return bound

    def count(self, node: ast.Expr | None, visible: Visible, what: str, least: int) -> Bound | None:
        """A number of times."""
        bound = self.parameter(node, visible)
        if bound is None or node is None:
            return None
        check_count(self.problems, bound, f"{what} is", node.span, least=least, code="B803")
        return bound

    def length(self, node: ast.Expr, visible: Visible, what: str, *, zero_allowed: bool = True) -> LengthPlan:
        """A length of time; it may be 0, unless it repeats."""
        binder = self.binder(visible)
        amounts = amounts_in(binder, node, what)
        parts = tuple((binder.bind(amount, PARAMETER), unit) for amount, unit in amounts)
        self.note_reads(binder)
        check_amounts(binder, parts, f"{what} takes", what, node.span, zero_allowed=zero_allowed)
        return LengthPlan(parts, node.span)

    def key(self, node: ast.Expr, visible: Visible, tags: Visible) -> Bound:
        """A key of `every-distinct`, which must depend on the operand's events."""
        bound = self.parameter(node, {**visible, **tags}, bare=tags)
        assert bound is not None
        own = {self.tags.places[name] for name in tags}
        if not any(isinstance(part, Read) and part.source in own for part in bound.walk()):
            self.problems.error(
                "B805",
                "a key of every-distinct depends on a tag of what it repeats",
                node.span,
                "every-distinct(a.dev) a=E",
            )
        return bound


def is_above(low: Const, high: Const) -> bool:
    """True if both are numbers of times, and the first is the larger one."""
    return low.value.__class__ is int and high.value.__class__ is int and bool(low.value > high.value)
