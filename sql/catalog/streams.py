"""The catalog: the streams with their columns, and the variables.

A stream without declared columns is schemaless: every name is legal and reads NULL if the message lacks it.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

from sql.aggregates.plain_values import decode, encode
from sql.catalog.declaration_checks import check_declaration
from sql.catalog.partition_places import Own
from sql.catalog.step_loop import StepLoop
from sql.errors import SqlError, did_you_mean
from sql.record import Record, field, replace
from sql.syntax import ColumnDefinition, ColumnType, CreateExpression, CreateStream, CreateVariable
from sql.types import Type, declared_type, type_named

if TYPE_CHECKING:
    from sql.plan.context_plan import ContextPlan
    from sql.plan.declared import VariableDeclaration
    from sql.plan.lookup_plan import Request

VALIDATION: dict[str, Literal["none", "intake", "rules"]] = {"true": "rules", "intake": "intake"}
"""The place where messages are checked, by STRICT_VALIDATION."""

FILE_ROWS = 9999
"""The rows that a scan table of a file keeps without RETAIN_SIZE; of any other source it keeps 1."""


WORDS = {
    "scan": "scan table",
    "lookup": "lookup table",
    "store": "lookup table of a store",
    "window": "named window",
}
"""Kinds of streams in messages; others are called what they are."""


class Stream(Record):
    """A declared stream. `columns` None: schemaless. `timestamp`: the event-time column."""

    name: str
    columns: dict[str, Type] | None = None
    timestamp: str | None = None
    timestamp_format: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    kind: Literal["stream", "scan", "lookup", "store", "window", "table"] = "stream"
    """A stream, a table of the newest rows, a lookup table before it is made, one that is queried event by
    event (`Catalog.lookup_tables`), a named window, a table of EPL: the last two are relations, with their
    rows in `Catalog.relations`."""
    declared: tuple[ColumnDefinition, ...] = ()
    """The columns with their full types, as STRICT_VALIDATION checks them."""

    inherits: tuple[str, ...] = ()
    """The types that its events also belong to (`create schema … inherits`)."""
    derived: bool = False
    """True if made by `insert into`: it has the columns of the statements that insert."""
    context: str | None = None
    """The context of a named window or table, whose partitions have one each."""
    fields: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The columns of the events that a column holds, one or a list, where it is known."""

    def element(self, column: str) -> Type:
        """The type of the elements of a column; any, where it is no declared array of some type."""
        kinds = (each.type.element for each in self.declared if each.name == column)
        kind = next(kinds, None)
        return Type.ANY if kind is None else declared_type(kind)

    @property
    def is_relation(self) -> bool:
        """True for a named window or a table, whose rows statements read and write."""
        return self.kind in ("window", "table")

    @property
    def is_type(self) -> bool:
        """True if events alone have it: no source, no table, no time stamps of its own."""
        return self.kind == "stream" and not self.options and self.timestamp is None

    @property
    def word(self) -> str:
        """The word for its kind in messages."""
        return WORDS.get(self.kind, self.kind)

    @property
    def is_filled(self) -> bool:
        """True for a lookup table whose rows a source puts in: what joins it speaks eKuiper's language, as
        what joins a table of a store does."""
        return self.kind == "table" and "KIND" in self.options

    @property
    def datasource(self) -> str:
        """The topic filter, file, address or table from which the rows come; empty where none is declared."""
        return str(self.options.get("DATASOURCE", ""))

    @property
    def format(self) -> str:
        """The format of the messages, as it is declared."""
        return str(self.options.get("FORMAT", "json"))

    @property
    def validation(self) -> Literal["none", "intake", "rules"]:
        """The place where messages are checked against the declared columns: none; at intake, which refuses
        one that does not fit as one dead letter, by the columns that rules read; or in each rule, by all
        columns, as an error of its own (eKuiper's way)."""
        if not self.declared:
            return "none"
        return VALIDATION.get(str(self.options.get("STRICT_VALIDATION", "")).lower(), "none")

    @property
    def is_strict(self) -> bool:
        """True if each rule checks every message against the declared columns."""
        return self.validation == "rules"

    @property
    def retained_rows(self) -> int | None:
        """The number of newest rows that a scan table keeps; None if this is no scan table."""
        if self.kind != "scan":
            return None
        default = FILE_ROWS if str(self.options.get("TYPE", "")).lower() == "file" else 1
        return int(self.options.get("RETAIN_SIZE", default))


@dataclass(slots=True)
class Variable:
    """A variable with its current value."""

    name: str
    type: Type
    value: Any = None
    constant: bool = False
    element: Type = Type.ANY
    """The type of its elements, if it is an array."""
    event: str = ""
    """The stream whose events it holds, one or a list; empty for other values."""
    arrived: Any = None
    """The value when the current event arrived, which filters of FROM read, whatever statements have assigned
    since."""

    def __post_init__(self) -> None:
        self.arrived = self.value


class Catalog:
    """Streams, relations, variables and contexts by name. Names are case-sensitive, as
    in eKuiper and Esper."""

    def __init__(self) -> None:
        self.streams: dict[str, Stream] = {}
        self.variables: MutableMapping[str, Variable] = {}
        self.context_variables: dict[str, dict[str, Variable]] = {}
        """By context: the variables with a value per partition, as declared."""
        self.contexts: dict[str, ContextPlan] = {}
        self.relations: MutableMapping[str, Any] = {}
        """Named windows and tables with their rows (`sql.algebra.table`)."""
        self.own = Own()
        """The variables and relations that texts read from the partition at work."""
        self.expressions: dict[str, CreateExpression] = {}
        """The declared expressions, by name."""
        self.lookup_tables: dict[str, Any] = {}
        """Tables that are queried event by event (`sql.engine.lookups`)."""
        self.requests: list[Request] | None = None
        """The requests to stores. None: no store is queried, and tables keep the rows they receive."""
        self.loop = StepLoop()
        """The queue between statements (`sql.engine.steps`)."""
        self.assigned: list[Variable] = []
        """Variables assigned since `end_step`."""
        self.watchers: list[Callable[[str], None]] = []
        """Called with the name of a variable that got a new value."""

    def add(self, stream: Stream) -> None:
        """Declare a stream, replacing one of the same name."""
        self.streams[stream.name] = stream

    def define(self, statement: CreateStream, text: str = "") -> Stream:
        """Declare the stream of a CREATE STREAM or create schema statement of a text; SqlError for
        unknown types and options."""
        check_declaration(statement, self.streams).raise_if_any(text)
        options = {option.key.upper(): option.value for option in statement.options}
        if statement.kind == "table":
            options.setdefault("TYPE", "memory" if _table_kind(options) == "lookup" else "file")
        columns = {column.name: self.type_of(column.type) for column in statement.columns} or None
        declared = statement.columns
        for name in (*statement.inherits, *statement.like):
            other = self.streams.get(name)
            if other is None:
                hint = did_you_mean(name, self.streams)
                raise SqlError.of("B202", f"unknown schema '{name}'", statement.span, hint, text=text)
            if name in statement.inherits and not other.is_type:
                why = f"'{name}' is a {other.word} with rows of its own, not a type to inherit from"
                hint = f"write copyfrom {name} for its columns"
                raise SqlError.of("B107", why, statement.span, hint, text=text)
            if name in statement.inherits and statement.name in self.lineage(name):
                why = f"'{statement.name}' would inherit itself"
                raise SqlError.of("B107", why, statement.span, text=text)
            columns = {**(columns or {}), **(other.columns or {})} or None
            declared = (*declared, *other.declared)
        stream = Stream(
            statement.name,
            columns,
            timestamp=_text(options.get("TIMESTAMP")),
            timestamp_format=_text(options.get("TIMESTAMP_FORMAT")),
            options=options,
            kind="stream" if statement.kind != "table" else _table_kind(options),
            declared=declared,
            inherits=statement.inherits,
            fields=self.fields_of(declared),
        )
        self.add(stream)
        return stream

    def lineage(self, name: str) -> Sequence[str]:
        """The types of an event of a stream: its own, those that this inherits, and theirs."""
        stream = self.streams.get(name)
        if stream is None or not stream.inherits:
            return (name,)
        found = {name: None}
        for other in stream.inherits:
            found |= dict.fromkeys(self.lineage(other))
        return tuple(found)

    def derive(
        self, name: str, columns: dict[str, Type] | None, fields: Mapping[str, tuple[str, ...]]
    ) -> None:
        """Declare the stream of `insert into name`; if other statements did, unite the columns.
        A stream with a declaration of its own keeps that."""
        known = self.streams.get(name)
        if known is None:
            self.add(Stream(name, columns, derived=True, fields=dict(fields)))
        elif known.derived and known.columns is not None and columns is not None:
            every = {**columns, **known.columns}
            sides = ((known.columns, known.fields), (columns, fields))
            self.add(replace(known, columns=every, fields=_united(every, sides)))

    def copied(self) -> Catalog:
        """An independent copy: streams and variables of an engine do not change the original."""
        copied = Catalog()
        copied.streams, copied.contexts = dict(self.streams), dict(self.contexts)
        copied.relations, copied.expressions = dict(self.relations), dict(self.expressions)
        copied.variables = {name: copy(variable) for name, variable in self.variables.items()}
        return copied

    def shared_by_partitions(self, variables: dict[str, Variable], relations: dict[str, Any]) -> Catalog:
        """The catalog for a text that serves all partitions of a context. Each partition has these variables
        and relations for itself; those given stand for them where their declaration alone matters."""
        found = self.within(variables, relations)
        found.own = Own(list(variables), list(relations))
        return found

    def within(
        self, own: dict[str, Variable], relations: dict[str, Any] | None = None, loop: StepLoop | None = None
    ) -> Catalog:
        """This catalog with further variables and relations, which hide those of the same name."""
        found = copy(self)
        found.variables = ChainMap(own, self.variables)
        found.relations = ChainMap(relations, self.relations) if relations else self.relations
        found.loop = loop or self.loop
        return found

    def assign(self, name: str, value: object) -> None:
        """Give a variable a new value, and call the watchers."""
        self.put(name, value)
        self.tell(name)

    def put(self, name: str, value: object) -> None:
        """Give a variable a new value, of which `tell` informs the watchers."""
        variable = self.variables[name]
        variable.value = value
        self.assigned.append(variable)

    def tell(self, name: str) -> None:
        """Call the watchers of a variable that has a new value."""
        for watcher in self.watchers:
            watcher(name)

    def variables_snapshot(self) -> dict[str, Any]:
        """The values of all variables that are no constants, as plain JSON-able data."""
        return {name: encode(item.value) for name, item in self.variables.items() if not item.constant}

    def restore_variables(self, values: dict[str, Any]) -> None:
        """Put the values of a snapshot back; a variable that is no longer declared is left out."""
        for name, value in values.items():
            if name in self.variables and not self.variables[name].constant:
                self.variables[name].value = self.variables[name].arrived = decode(value)

    def values_of(self, names: Iterable[str]) -> dict[str, Any]:
        """The values of the variables that are not constants, as plain data."""
        known = {name: self.variables[name] for name in sorted(names) if name in self.variables}
        return {name: encode(item.value) for name, item in known.items() if not item.constant}

    @contextmanager
    def holding(self, values: Mapping[str, Any]) -> Iterator[None]:
        """While windows begin as they began before: variables have the values that they had then."""
        held = [
            (self.variables[name], decode(value)) for name, value in values.items() if name in self.variables
        ]
        present = [variable.value for variable, _ in held]
        for variable, value in held:
            variable.value = value
        try:
            yield
        finally:
            for (variable, _), value in zip(held, present, strict=True):
                variable.value = value

    def end_step(self) -> None:
        """End the event: filters of the next one see the values that statements have assigned."""
        for variable in self.assigned:
            variable.arrived = variable.value
        self.assigned.clear()

    def type_of(self, column: ColumnType) -> Type:
        """The type of a declared column; the name of a schema is the type of its events."""
        return Type.OBJECT if column.name in self.streams else declared_type(column)

    def fields_of(self, columns: Iterable[ColumnDefinition]) -> dict[str, tuple[str, ...]]:
        """The columns of the events that columns hold, one or a list, whose type is the name of a schema."""
        found = {}
        for column in columns:
            schema = self.streams.get((column.type.element or column.type).name)
            if schema is not None and schema.columns is not None:
                found[column.name] = tuple(schema.columns)
        return found

    def type_of_variable(self, statement: CreateVariable) -> Type:
        """The type of a declared variable."""
        if statement.array:
            return Type.ARRAY
        is_event = statement.type_name in self.streams
        return Type.OBJECT if is_event else type_named(statement.type_name) or Type.ANY

    def define_variable(self, statement: CreateVariable, value: object) -> Variable:
        """Declare a variable with its first value."""
        kind, constant = self.type_of_variable(statement), statement.constant
        element = (type_named(statement.type_name) or Type.ANY) if statement.array else Type.ANY
        event = statement.type_name if statement.type_name in self.streams else ""
        variable = Variable(statement.name, kind, value, constant, element, event)
        self.variables[statement.name] = variable
        return variable


def declare_in_context(catalog: Catalog, context: str, declared: VariableDeclaration) -> None:
    """Declare a variable that each partition of a context has for itself."""
    variable = Variable(
        *(declared.name, declared.type, declared.value),
        *(declared.constant, declared.element, declared.event),
    )
    catalog.context_variables.setdefault(context, {})[declared.name] = variable


def _united(
    columns: Iterable[str], sides: Sequence[tuple[Mapping[str, Type], Mapping[str, tuple[str, ...]]]]
) -> dict[str, tuple[str, ...]]:
    """The columns of the events in `columns`, by the columns and fields of each of `sides`. A column that one
    side has without known fields is left out."""
    out = {}
    for name in columns:
        given = [fields.get(name) for held, fields in sides if name in held]
        known = [names for names in given if names is not None]
        if len(known) == len(given):
            out[name] = tuple(dict.fromkeys(chain.from_iterable(known)))
    return out


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _table_kind(options: dict[str, Any]) -> Literal["scan", "lookup"]:
    return "lookup" if str(options.get("KIND", "scan")).lower() == "lookup" else "scan"
