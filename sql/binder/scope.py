"""The site of a statement, and the meaning of names in it: the sources of FROM, the aliases of SELECT,
variables, built-in properties."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from sql import functions
from sql.binder.place import Place
from sql.catalog.streams import Catalog, Stream
from sql.errors import Problems, Span, did_you_mean
from sql.plan.bound import Apply, Bound, Const, Op, Read, Slot
from sql.plan.context_plan import WORD, ContextPlan, Property
from sql.plan.lookup_plan import carrier
from sql.plan.options import RuleOptions
from sql.record import Record, replace
from sql.syntax import ColumnDefinition, ColumnType, SelectItem
from sql.types import Type, declared_type

UNKNOWN = Const(None)
"""Stands where an expression could not be bound; its problem has been reported."""

META = "$meta"
"""The column under which a row carries its message's metadata (topic, message id, …)."""

NAME_CONTEXT = "write CONTEXT and its name before the statement, or context: beside sql in a rule file"
NAMES_ALONE = "in the definition of a context the names given with AS stand alone: s.id"


def name_of_start(name: str, known: Iterable[str]) -> str:
    """The hint for a name that may be meant to be that of the event which started a partition."""
    names = ", ".join(known)
    if names:
        return f"the partition was started by: {names}"
    return f"give the event that starts the partition a name: … as {name}"


class Site(Record):
    """The surroundings that a statement is bound in, the same for all its clauses.

    text       the text that all positions are places in
    problems   takes what the binders report
    context    the context whose partitions it runs in: `context.…` are their properties
    places     in the definition of a context: the events that started the partition, by name
    outer      the scope around a subquery
    in_definition  True in the definition of a context
    on_demand  True for a question, which is asked once, of relations
    """

    catalog: Catalog
    options: RuleOptions
    text: str
    problems: Problems = msgspec.field(default_factory=Problems)
    context: ContextPlan | None = None
    places: dict[str, tuple[Slot, Property]] = msgspec.field(default_factory=dict)
    outer: Scope | None = None
    in_definition: bool = False
    on_demand: bool = False

    def raise_if_any(self) -> None:
        """Raise SqlError with all problems if one of them is an error."""
        self.problems.raise_if_any(self.text)


def name_of_a_context(site: Site, name: str) -> str | None:
    """The hint for a name of the statement's context, or for a variable of another one."""
    if (context := site.context) is not None:
        for level in context.levels:
            if any(item.name == name for item in level.properties):
                return f"write context.{level.name}.{name}" if context.nested else f"write context.{name}"
    return variable_of_a_context(site, name)


def variable_of_a_context(site: Site, name: str) -> str | None:
    """The hint for a variable of another context than the statement's."""
    owner = next((owner for owner, own in site.catalog.context_variables.items() if name in own), None)
    return None if owner is None else f"{name} belongs to context '{owner}': write CONTEXT {owner} first"


class SourceScope(Record):
    """One source as names see it. `columns` None: every name is legal. `scalar`: the bare
    item means this column."""

    alias: str
    stream: str
    columns: dict[str, Type] | None
    scalar: str | None = None
    is_item: bool = False
    declared: dict[str, ColumnType] = msgspec.field(default_factory=dict)
    """The full types of its columns, with the fields of structs, where they are declared."""
    tag: Literal["event", "list", "hidden"] | None = None
    """A tag of a pattern, whose columns are read through its name only: one event, the list of those that a
    repeat has met, or one that cannot be read in this place."""
    fields: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """The columns of the events that a column holds, one or a list, where they are known."""
    carrier: str | None = None
    """The column of the first source's events that holds the row: for a table of a store."""

    @classmethod
    def of(cls, stream: Stream, alias: str) -> SourceScope:
        """A stream under a name."""
        declared = {column.name: column.type for column in stream.declared}
        return cls(alias, stream.name, stream.columns, declared=declared, fields=stream.fields)


@dataclass(slots=True)
class Scope:
    """All names of one statement, and what was read through them."""

    site: Site
    sources: list[SourceScope]
    aliases: dict[str, SelectItem] = field(default_factory=dict)
    reads: list[set[str] | None] = field(default_factory=list)
    outer: Scope | None = None
    """The scope around a subquery. Its sources stand behind the subquery's own,
    and need their names."""
    own: int = 0
    """The number of sources that are the statement's own."""
    correlated: bool = False
    """True if a source of the scope around was read."""
    tables: set[str] = field(default_factory=set)
    """The tables whose rows were read by key."""
    subquery_rows: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """The columns of the rows of subqueries, by their place, where they are known."""
    bare: tuple[int, ...] = ()
    """The tags whose columns may stand without the name of the tag."""

    def __post_init__(self) -> None:
        self.own = self.own or len(self.sources)
        self.reads = [set() for _ in self.sources]
        if self.outer is not None:
            self.sources = [*self.sources, *self.outer.sources]
            self.reads = [*self.reads, *self.outer.reads]

    # --- reading ---

    def read(self, index: int, column: str, span: Span) -> Bound:
        """A column of one source, remembered as read."""
        source = self.sources[index]
        kind = Type.ANY if source.columns is None else source.columns.get(column, Type.ANY)
        if source.carrier is not None:
            return Op("field", (self._carried(index, source.carrier),), column, type=kind, span=span)
        known = self.reads[index]
        self.correlated = self.correlated or index >= self.own
        if known is not None:
            known.add(column)
        return Read(index, column, type=kind, span=span)

    def read_all(self, index: int, span: Span) -> Bound:
        """The whole event of one source, or the list of a repeated tag: everything is read."""
        held = self.sources[index].carrier
        if held is not None:
            return replace(self._carried(index, held), span=span)
        columns = self.sources[index].columns
        known = self.reads[index]
        self.correlated = self.correlated or index >= self.own
        if columns is None:
            self.reads[index] = None
        elif known is not None:
            known.update(columns)
        is_list = self.sources[index].tag == "list"
        return Read(index, None, type=Type.ARRAY if is_list else Type.OBJECT, span=span)

    def _carried(self, index: int, column: str) -> Read:
        """The row that an event of the first source carries, in this statement or in the one around it."""
        self.correlated = self.correlated or index >= self.own
        return carrier(column, self._first_beside(index))

    def _first_beside(self, index: int) -> int:
        """The place of the first source of the statement that a source belongs to."""
        if self.outer is None or index < self.own:
            return 0
        return self.own + self.outer._first_beside(index - self.own)

    def meta(self, span: Span, index: int = 0) -> Bound:
        """The metadata of the message of one source."""
        if self.reads and self.sources[index].carrier is not None:
            return self.read(index, META, span)
        known = self.reads[index] if self.reads else None
        if known is not None:
            known.add(META)
        return Read(index, META, type=Type.OBJECT, span=span)

    # --- resolving ---

    def source_named(self, name: str) -> int | None:
        """The source a qualifier names: by alias, else by stream name."""
        for index, source in enumerate(self.sources):
            if name == source.alias:
                return index
        matches = [index for index, source in enumerate(self.sources[: self.own]) if name == source.stream]
        matches = matches or [index for index, source in enumerate(self.sources) if name == source.stream]
        return matches[0] if len(matches) == 1 else None

    def aliased(self, name: str) -> int | None:
        """The source with this alias, where it was given one."""
        return next((i for i, item in enumerate(self.sources) if item.alias == name != item.stream), None)

    def holders(self, name: str) -> list[int]:
        """The sources that declare a column of this name."""
        own = self.sources[: self.own]
        return [
            i
            for i, source in enumerate(own)
            if source.columns is not None and name in source.columns and source.tag is None
        ]

    def tag_named(self, name: str) -> int | None:
        """The tag of a pattern that is called so."""
        return next(
            (i for i, source in enumerate(self.sources) if source.tag is not None and source.alias == name),
            None,
        )

    def column(self, name: str, table: str | None, place: Place, span: Span) -> Bound | None:
        """The meaning of a column name; None for an unknown name (the caller reports it)."""
        if table is not None:
            return self._qualified(name, table, place, span)
        if name.startswith(("?", ":")):
            return self._parameter(name, span)
        item = (
            self.source_named(name)
            if self.sources and any(source.is_item for source in self.sources)
            else None
        )
        if item is not None and self.sources[item].alias == name:
            scalar = self.sources[item].scalar
            return self.read(item, scalar, span) if scalar else self.read_all(item, span)
        declared = self.holders(name)
        if place.preferred in declared:
            return self.read(place.preferred, name, span)
        if len(declared) > 1:
            owners = [self.sources[index].alias for index in declared]
            message = f"column '{name}' is in {' and '.join(map(repr, owners))}"
            hint = f"write {' or '.join(f'{owner}.{name}' for owner in owners)}"
            self.site.problems.error("B203", message, span, hint)
        if declared:
            return self.read(declared[0], name, span)
        tag = self.tag_named(name)
        if tag is not None:
            return self.read_all(tag, span)
        if name in self.site.catalog.variables:
            variable = self.site.catalog.variables[name]
            return Slot("arrived" if place.at_arrival else "variable", name, type=variable.type, span=span)
        own = self.sources[: self.own]
        free = [index for index, source in enumerate(own) if source.columns is None and source.tag is None]
        if len(free) == 1:
            return self.read(free[0], name, span)
        return self._in_any(free, name, span) if free else None

    def _parameter(self, name: str, span: Span) -> Bound:
        """A parameter of a question, which is a variable of it."""
        variable = self.site.catalog.variables.get(name)
        if variable is None:
            hint = "questions on demand take parameters, a rule has variables"
            self.site.problems.error(
                "B560", f"parameter '{name.rstrip('0123456789')}' has no value", span, hint
            )
        kind = Type.ANY if variable is None else variable.type
        return Slot("variable", name, type=kind, span=span)

    def _in_any(self, sources: list[int], name: str, span: Span) -> Bound:
        """A column of a joined row whose streams declare none: that of the leftmost source that has it."""
        aliases = [self.sources[index].alias for index in sources]
        message = f"column '{name}' may be in {' or '.join(map(repr, aliases))}: the first has it"
        self.site.problems.warn("B708", message, span, f"write {aliases[0]}.{name} to say which")
        coalesce = functions.lookup("coalesce")
        assert coalesce is not None
        return Apply(coalesce, tuple(self.read(index, name, span) for index in sources), span=span)

    def _qualified(self, name: str, table: str, place: Place, span: Span) -> Bound | None:
        source = self.source_named(table) if table else None
        if source is not None:
            columns = self.sources[source].columns
            if self.sources[source].tag == "list":
                message = f"'{table}' is the list of the events that a repeat has met"
                self.site.problems.error("B806", message, span, f"write {table}[0].{name}")
                return self.read(source, name, span)
            if columns is not None and name not in columns:
                self.unknown(name, span, source)
            return self.read(source, name, span)
        base = self.column(table, None, place, span)  # `a.b` where a is a struct column
        if table == WORD and base is not None and self.site.catalog.contexts and not self.holders(WORD):
            message = f"'context.{name}' is read from the payload: the statement is in no context"
            hint = f"{NAME_CONTEXT}; declare the column 'context' if it is one"
            self.site.problems.warn("B716", message, span, hint)
        return None if base is None else self.field(base, name, span)

    def field(self, base: Bound, name: str, span: Span) -> Bound:
        """A field of a struct; what is no struct, or lacks the field by its declaration, is reported."""
        if not Type.OBJECT.accepts(base.type):
            every = f"read one element, x[0]->{name}, or all: json_path_query(x, '$[*].{name}')"
            self.site.problems.error(
                "B301",
                f"'{name}' is read from a struct, not {base.type.value}",
                base.span,
                f"{every}; eKuiper fails at each event" if base.type is Type.ARRAY else "eKuiper reads NULL",
            )
        struct = self.declaration(base)
        if struct is None or not struct.fields:
            return Op("field", (base,), name, span=span)
        types = {column.name: column.type for column in struct.fields}
        if name not in types:
            message = f"unknown field '{name}' of a struct; it has {', '.join(sorted(types)[:12])}"
            self.site.problems.error("B201", message, span, did_you_mean(name, types))
            return Op("field", (base,), name, span=span)
        return Op("field", (base,), name, type=declared_type(types[name]), span=span)

    def declaration(self, bound: Bound) -> ColumnType | None:
        """The declared type of a column, of a field in it, or of an element of it;
        None where there is none."""
        if isinstance(bound, Read) and bound.column is None:
            return self._declared_event(self.sources[bound.source])
        if isinstance(bound, Read):
            return self.sources[bound.source].declared.get(bound.column or "")
        if not isinstance(bound, Op) or bound.name not in ("field", "index"):
            return None
        outer = self.declaration(bound.args[0])
        if outer is None or bound.name == "index":
            return None if outer is None else outer.element
        return next((column.type for column in outer.fields if column.name == bound.extra), None)

    @staticmethod
    def _declared_event(source: SourceScope) -> ColumnType | None:
        """The type of a tag's event as a struct, or of its list; None where it is not declared."""
        if not source.declared or source.tag is None:
            return None
        columns = tuple(ColumnDefinition(name, declared) for name, declared in source.declared.items())
        event = ColumnType("struct", fields=columns)
        return ColumnType("array", event) if source.tag == "list" else event

    # --- reporting ---

    def unknown(self, name: str, span: Span, source: int | None = None, builtins: Iterable[str] = ()) -> None:
        """Report an unknown column, with what there is and the nearest name. `builtins`: names that can
        stand there, of a window."""
        if source is None and name == WORD and self.site.context is None:
            if self.site.problems.has("B810"):
                return
            what = "'context.…' is a property of a partition, and the statement is in no context"
            self.site.problems.error("B818", what, span, NAMES_ALONE if self.site.places else NAME_CONTEXT)
            return
        if source is None and any(item.tag is not None for item in self.sources):
            self._unknown_tag(name, span)
            return
        among = self.sources[: self.own] if source is None else [self.sources[source]]
        among = [item for item in among if not item.stream.startswith("$")]  # private ones, of no text
        known = list(
            dict.fromkeys(column for item in among for column in (item.columns or {}) if column != META)
        )
        streams = self.site.catalog.streams
        where = " and ".join(
            f"{streams.get(item.stream, Stream('')).word} '{item.stream}'" if item.stream else "the pattern"
            for item in among
        )
        where = where or "a statement without FROM"
        has = f"; it has {', '.join(sorted(known)[:12])}" if known else ""
        aliases = [alias for alias in self.aliases if alias != name]  # `q AS q` is no help for q
        beside = [*aliases, *self.site.catalog.variables] if source is None else []
        hint = did_you_mean(name, [*known, *beside, *self.site.places, *builtins])
        if source is None:
            hint = name_of_a_context(self.site, name) or hint
        if self.site.in_definition and span.end - span.start > len(name):  # it qualifies a column
            hint = hint or name_of_start(name, self.site.places)
        self.site.problems.error("B201", f"unknown column '{name}' in {where}{has}", span, hint)

    def unknown_source(self, name: str, span: Span) -> None:
        """Report the name of a source that FROM does not have; where a stream of FROM is unknown, it may be
        that one's."""
        if self.site.problems.has("B202"):
            return
        hint = did_you_mean(name, [source.alias for source in self.sources])
        self.site.problems.error("B202", f"unknown stream '{name}'", span, hint)

    def _unknown_tag(self, name: str, span: Span) -> None:
        """Report a name inside a pattern, or over its matches, that is no tag that can be read there."""
        tags = [
            source.alias for source in self.sources if source.alias and source.tag not in (None, "hidden")
        ]
        own = [column for source in self.sources if source.tag is None for column in source.columns or {}]
        readable = f"the tag{'s' if tags[1:] else ''} {', '.join(tags)}" if tags else "no tag"
        where = "to the left of an arrow" if own else "of the pattern"
        hint = did_you_mean(name, [*own, *tags, *self.site.catalog.variables])
        known = f"there {'are' if tags[1:] else 'is'} {readable} {where}"
        message = f"unknown name '{name}'; {known}, whose columns are read as tag.column"
        self.site.problems.error("B201", message, span, hint)
