"""The names of one level of a context: its properties, and what its expressions read."""

from __future__ import annotations

from sql import syntax as ast
from sql.binder.binding import no_subquery
from sql.binder.catalog_names import stream_named
from sql.binder.expressions.expression_binder import ExpressionBinder
from sql.binder.place import Place
from sql.binder.reads import Reads, note_reads
from sql.binder.scope import Scope, Site, SourceScope
from sql.catalog.streams import Stream
from sql.errors import Span
from sql.plan.bound import Bound, Slot
from sql.plan.context_plan import Property
from sql.record import replace
from sql.types import Type

POINT = Place("the condition of a context", analytics=False, aliases=False)

NO_SUBQUERY = no_subquery("B209", "in the definition of a context")


class LevelNames:
    """Binds expressions of one level.

    Names of starting events become places, which the end condition may read.
    """

    def __init__(self, depth: int, part: ast.ContextPart, site: Site) -> None:
        self.depth = depth
        self.part = part
        self.site = site
        self.problems = site.problems
        self.properties: list[Property] = []
        self.reads: Reads = {}

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
        hint = "write @now" if name.lower() == "now" else "declare it before the context"
        stream = stream_named(self.site, name, span, hint) or Stream(name)
        if stream.kind != "stream":
            self.problems.error("B813", f"'{name}' is a {stream.word}, and a context divides streams", span)
        return stream

    def within(self, alias: str | None = None) -> Site:
        """The site of an expression that reads the events which started the partition, by name, except its
        own event `alias`."""
        places = {
            item.name: (Slot("context", (self.depth, index), type=item.type), item)
            for index, item in enumerate(self.properties)
            if item.type in (Type.OBJECT, Type.ARRAY) and item.name != alias
        }
        return replace(self.site, places=places, in_definition=True)

    def expression(
        self, node: ast.Expr, stream: Stream, alias: str | None, *, condition: bool = False
    ) -> Bound:
        """An expression over the events of a stream, and those that started the partition."""
        scope = Scope(self.within(alias), [SourceScope.of(stream, alias or stream.name)])
        binder = ExpressionBinder(scope, NO_SUBQUERY)
        bound = binder.condition(node, POINT) if condition else binder.bind(node, POINT)
        assert bound is not None
        note_reads(self.reads, stream.name, scope.reads[0])
        return bound

    def filter(self, node: ast.Expr | None, stream: Stream, alias: str | None) -> Bound | None:
        """A condition of the events of a stream."""
        self.reads.setdefault(stream.name, frozenset())
        return None if node is None else self.expression(node, stream, alias, condition=True)
