"""The names of one level of a context: its properties, and what its expressions read."""

from __future__ import annotations

from sql import syntax as ast
from sql.binder.binding import Place
from sql.binder.expressions.expression_binder import ExpressionBinder
from sql.binder.scope import Scope, SourceScope
from sql.catalog.streams import Catalog, Stream
from sql.errors import Problems, Span, did_you_mean
from sql.plan.bound import Bound, Const, Slot
from sql.plan.context_plan import Property
from sql.plan.options import RuleOptions
from sql.types import Type

POINT = Place("the condition of a context", analytics=False, aliases=False)


class LevelNames:
    """Binds expressions of one level.

    Names of starting events become places, which the end condition may read.
    """

    def __init__(
        self,
        depth: int,
        part: ast.ContextPart,
        catalog: Catalog,
        options: RuleOptions,
        problems: Problems,
        text: str,
    ) -> None:
        self.depth = depth
        self.part = part
        self.catalog = catalog
        self.options = options
        self.problems = problems
        self.text = text
        self.properties: list[Property] = []
        self.reads: dict[str, frozenset[str] | None] = {}

    def place(
        self, name: str | None, kind: Type, span: Span, columns: dict[str, Type] | None = None
    ) -> int | None:
        """The place of a property; a problem where the name is taken."""
        if name is None:
            return None
        if any(item.name == name for item in self.properties) or name in ("id", "name"):
            self.problems.error(
                "B811", f"two properties of the context are called '{name}'", span, "rename one"
            )
        self.properties.append(Property(name, kind, columns))
        return len(self.properties) - 1

    def event_place(self, name: str | None, stream: Stream, span: Span) -> int | None:
        """The place of an event, which is kept whole."""
        if name is not None:
            self.reads[stream.name] = None
        return self.place(name, Type.OBJECT, span, stream.columns)

    def times(self) -> None:
        """The properties of a partition that lives in time."""
        self.place("startTime", Type.INTEGER, self.part.span)
        self.place("endTime", Type.INTEGER, self.part.span)

    def stream(self, name: str, span: Span) -> Stream:
        """A declared stream; a problem for anything else."""
        stream = self.catalog.streams.get(name)
        if stream is None:
            hint = did_you_mean(name, self.catalog.streams) or "declare it before the context"
            self.problems.error("B202", f"unknown stream '{name}'", span, hint)
            return Stream(name)
        if stream.kind != "stream":
            self.problems.error("B813", f"'{name}' is a table, and a context divides streams", span)
        return stream

    def _binder(self, stream: Stream, alias: str | None) -> ExpressionBinder:
        columns = {column.name: column.type for column in stream.declared}
        scope = Scope(
            self.catalog,
            self.problems,
            [SourceScope(alias or stream.name, stream.name, stream.columns, declared=columns)],
        )
        scope.places = self.places(alias)
        binder = ExpressionBinder(scope, self.no_subquery)
        binder.text, binder.epl = self.text, True
        return binder

    def places(self, alias: str | None) -> dict[str, tuple[Slot, Property]]:
        """The events that started the partition, by name."""
        return {
            item.name: (Slot("context", (self.depth, index), type=item.type), item)
            for index, item in enumerate(self.properties)
            if item.type in (Type.OBJECT, Type.ARRAY) and item.name != alias
        }

    def no_subquery(self, node: ast.Subquery | ast.Quantified, scope: Scope) -> Bound:
        """Refuse a subquery."""
        self.problems.error("B209", "a subquery cannot stand in the definition of a context", node.span)
        return Const(None)

    def expression(
        self, node: ast.Expr, stream: Stream, alias: str | None, *, condition: bool = False
    ) -> Bound:
        """An expression over the events of a stream, and those that started the partition."""
        binder = self._binder(stream, alias)
        bound = binder.condition(node, POINT) if condition else binder.bind(node, POINT)
        assert bound is not None
        found = binder.scope.reads[0]
        known = self.reads.get(stream.name, frozenset())
        self.reads[stream.name] = None if found is None or known is None else known | found
        return bound

    def filter(self, node: ast.Expr | None, stream: Stream, alias: str | None) -> Bound | None:
        """A condition of the events of a stream."""
        self.reads.setdefault(stream.name, frozenset())
        return None if node is None else self.expression(node, stream, alias, condition=True)
