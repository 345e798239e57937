"""Small functions for the engine's operators, one per clause: (event, aggregate values, window) -> value.

e   the event; its row is a dict, a struct, or for joins a tuple of rows
a   the values of aggregates, then of prev calls
w   the window's (start, end, trigger), the built-in properties of expression windows, or TRUE on insert rows
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

from sql.aggregates.base import Aggregate
from sql.catalog.streams import Catalog
from sql.codegen.expression_code import NUMBER, Code
from sql.codegen.expression_writer import ExpressionWriter
from sql.codegen.hits import HitCounters
from sql.codegen.loop import LoopWriter
from sql.codegen.names import Names
from sql.codegen.output_rows import Columns, sort_key_text, write_items
from sql.codegen.own_reads import partition_text, relation_text, variable_text, whole_text
from sql.codegen.reader import RowReader
from sql.codegen.source import Generated, SourceWriter, compiled
from sql.codegen.support import Warnings
from sql.errors import DataError, Span, positioned
from sql.functions.definition import Context
from sql.plan.bound import Bound, Const, Slot
from sql.plan.clauses import Criterion, ItemPlan
from sql.plan.pattern_plan import OWN
from sql.rows import Shape, column_text, field_name
from sql.types import key_of

DATA_ERRORS = (DataError, TypeError, ValueError, ArithmeticError, AttributeError, KeyError, IndexError)
"""The errors that a wrong value in an event may raise; any other error is a defect of the engine."""

EventFunction = Callable[..., Any]


class EngineReader:
    """The reads of the engine's functions: through the event `e`, the values `a` and the window `w`."""

    def __init__(self, names: Names, catalog: Catalog, context: Context, *, shape: Shape, joined: bool,
                 offsets: dict[str, int], hits: HitCounters, partition: Sequence[Any] | None = None,
                 subqueries: Sequence[Callable[[Any], Any]] = ()) -> None:  # fmt: skip
        self.subqueries = subqueries
        self.names = names
        self.context = context
        self.partition = partition
        self.catalog = catalog
        self.shape = shape
        self.joined = joined
        self.offsets = offsets
        self.hits = hits

    def read(self, source: int, column: str | None) -> Code:
        row = f"e.row[{source}]" if self.joined else "e.row"
        if column is None:
            return Code(whole_text(self.names, row, self.shape), self.joined)
        if self.shape == "kept":
            return Code(f"e.{field_name(column)}")
        return self._of_nullable(row, column) if self.joined else Code(column_text(row, column, self.shape))

    def _of_nullable(self, row: str, column: str) -> Code:
        """A column of a row that may be NULL."""
        name = self.names.temporary()
        return Code(f"(None if ({name} := {row}) is None else {column_text(name, column, self.shape)})")

    def relation(self, name: str) -> str:
        """The text of the named window or table of this name."""
        return relation_text(self.names, self.catalog, name)

    def slot(self, slot: Slot) -> Code:
        if slot.kind == "hit":
            hits, attribute = self.hits.of(slot.key)
            return Code(f"{self.names.bind(hits, 'hits')}.{attribute}", False, False, NUMBER)
        if slot.kind == "subquery":
            return Code(f"{self.names.bind(self.subqueries, 'subqueries')}[{slot.key}](e)")
        if slot.kind in ("aggregate", "prev", "row_number"):
            return Code(f"a[{self.offsets[slot.kind] + slot.key}]")
        if slot.kind == "analytic":
            return Code(f"e.extra[{slot.key}]")
        if slot.kind == "window":
            return Code(f"w[{('start', 'end', 'trigger').index(slot.key)}]", False, True, NUMBER)
        if slot.kind in ("variable", "arrived"):
            return Code(variable_text(self.names, self.catalog, slot))
        if slot.kind == "context":
            # In the definition of a context the partition is an argument of the call.
            partition = "a" if self.partition is None else self.names.bind(self.partition, "partition")
            return Code(partition_text(partition, slot))
        if slot.kind == "builtin":
            is_count = str(slot.key).endswith("_count") or str(slot.key).startswith("count_")
            return Code(f"w.{slot.key}", False, False, NUMBER) if is_count else Code(f"w.{slot.key}")
        if slot.kind == "event_time":
            return Code("(e.time_ms if w is None or w is True or w is False else w[1])", False, False, NUMBER)
        assert slot.kind == "istream", slot.kind
        return Code("(w is not False)", False, False, "boolean")


class PatternReader(EngineReader):
    """The reads of a pattern's functions: `e` is the row of the event that a filter tests, `a` the tags'
    values."""

    def read(self, source: int, column: str | None) -> Code:
        if source == OWN:
            return Code("e", False) if column is None else Code(column_text("e", column, self.shape))
        return Code(f"a[{source}]") if column is None else self._of_nullable(f"a[{source}]", column)

    def slot(self, slot: Slot) -> Code:
        if slot.kind == "event_time":
            return Code(f"{self.names.bind(self.context, 'context')}.now_ms", False, False, NUMBER)
        return super().slot(slot)


class FunctionSet:
    """The functions of one query, compiled for one place; it maps errors to their SQL position."""

    def __init__(self, catalog: Catalog, context: Context, warnings: Warnings, *, shape: Shape = "dict",
                 joined: bool = False, offsets: dict[str, int] | None = None, text: str = "",
                 hits: HitCounters | None = None, kind: type[EngineReader] = EngineReader,
                 subqueries: Sequence[Callable[[Any], Any]] = (), literals: bool = True) -> None:  # fmt: skip
        self.names = Names(literals=literals)
        self.text = text
        reader = kind(
            self.names,
            catalog,
            context,
            shape=shape,
            joined=joined,
            offsets=offsets or {"aggregate": 0, "prev": 0},
            hits=hits or HitCounters(()),
            partition=context.partition,
            subqueries=subqueries,
        )
        self.reader = reader
        self.writer = ExpressionWriter(reader, self.names, warnings, context)
        self.catalog = catalog
        self.beside = {"subqueries": subqueries, "partition": context.partition}
        """The further names of functions of several lines."""
        self.spans: dict[str, Span] = {}
        self.lines: dict[tuple[str, int], Span] = {}
        self.generated: list[Generated] = []
        """The functions of several lines."""
        self.made: dict[tuple[str, int], tuple[Any, EventFunction]] = {}
        """The functions of values, conditions and keys with the trees that they are of: instances of a
        statement share them."""
        self.expressions: list[tuple[str, Span]] = []
        """The expressions of the other functions, with their places in the SQL."""

    def define(self, text: str, span: Span) -> EventFunction:
        """The function that returns the Python expression `text`."""
        name, code = compiled(f"def f(e, a=None, w=None):\n    return {text}\n", self)
        self.expressions.append((text, span))
        self.spans.setdefault(name, span)
        local: dict[str, EventFunction] = {}
        exec(code, self.names.bound, local)
        return local["f"]

    def generate(self, source: SourceWriter, **names: Any) -> Generated:
        """The functions of several lines; `names`: their names beside those of the expressions in them."""
        found = Generated(source, {**self.names.bound, **self.beside, **names})
        self.lines |= {(found.file, line): span for line, span in found.spans.items()}
        self.generated.append(found)
        return found

    def loop(
        self,
        source: SourceWriter,
        slots: dict[Any, Code],
        *,
        rows: Mapping[int, str] | None = None,
        nullable: Container[int] = (),
        kept: Container[int] = (),
    ) -> LoopWriter:
        """A writer of statements over the row `e`, or over rows in locals by source, which are NULL for those
        `nullable`, and rows of relations for those `kept`; `slots` has the code of values beside columns."""
        own, reader = self.writer, self.reader
        for place in range(len(reader.hits.calls)):
            hits, attribute = reader.hits.of(place)
            text = f"{self.names.bind(hits, 'hits')}.{attribute}"
            slots = {**slots, ("hit", place): Code(text, False, False, NUMBER)}
        settings = self.names, self.catalog, reader.shape, slots
        found = RowReader(*settings, joined=reader.joined, rows=rows, nullable=nullable, kept=kept)
        return LoopWriter(source, found, own.warnings, own.context)

    def value(self, node: Bound) -> EventFunction:
        """The value of an expression."""
        return self._once("value", node, lambda: self.define(self.writer.text(node), node.span))

    def true(self, node: Bound) -> EventFunction:
        """True if an expression is TRUE."""
        return self._once("true", node, lambda: self.define(self.writer.true(node), node.span))

    def _once(self, kind: str, tree: object, make: Callable[[], EventFunction]) -> EventFunction:
        found = self.made.get((kind, id(tree)))
        if found is None:
            found = self.made[kind, id(tree)] = tree, make()
        return found[1]

    def key(self, nodes: tuple[Bound, ...]) -> EventFunction:
        """A hashable key of several expressions, equal exactly if SQL groups them together."""
        return self._once("key", nodes, lambda: self._key(nodes))

    def _key(self, nodes: tuple[Bound, ...]) -> EventFunction:
        if not nodes:
            return self.define("()", Span(0, 0))
        name, value = self.names.bind(key_of, "key_of"), self.names.temporary()
        parts = [
            f"({value} if ({value} := {self.writer.text(node)}).__class__ is str else {name}({value}))"
            for node in nodes
        ]
        text = parts[0] if len(parts) == 1 else f"({', '.join(parts)})"
        return self.define(text, nodes[0].span)

    def find(self, node: Bound) -> EventFunction:
        """The entry of a dict, passed as `a`, for the key of a value; None for NULL."""
        key = self.names.temporary()
        text = self.wanted_key_text((node,), (False,))
        return self.define(f"None if ({key} := ({text})) is None else a.get({key})", node.span)

    def wanted_key(self, nodes: Sequence[Bound], nulls: Sequence[bool]) -> EventFunction:
        """A key of several values, or None if one of them is NULL that, by `nulls`, can equal nothing."""
        return self.define(self.wanted_key_text(nodes, nulls), nodes[0].span if nodes else Span(0, 0))

    def wanted_key_text(self, nodes: Sequence[Bound], nulls: Sequence[bool]) -> str:
        """The text of `wanted_key`; without values the key is empty."""
        if not nodes:
            return "()"
        name = self.names.bind(key_of, "key_of")
        texts, tests = [], []
        for node, may_be_null in zip(nodes, nulls, strict=True):
            text = self.writer.text(node)
            if may_be_null:
                texts.append(f"{name}({text})")
                continue
            value = self.names.temporary()
            texts.append(f"({value} if {value}.__class__ is str else {name}({value}))")
            tests.append(f"({value} := {text}) is None")
        whole = f"({', '.join(texts)},)" if len(texts) > 1 or any(nulls) else texts[0]
        return f"None if {' or '.join(tests)} else {whole}" if tests else whole

    def criteria(self, criteria: tuple[Criterion, ...], *, nulls_lowest: bool) -> EventFunction:
        """A sort key. NULL is lowest (EPL) or last in either direction (eKuiper), if NULLS FIRST is
        absent."""
        text = sort_key_text(self.writer.text, self.names, criteria, nulls_lowest=nulls_lowest)
        return self.define(text, criteria[0].value.span)

    def argument(self, definition: Aggregate, args: tuple[Bound, ...]) -> EventFunction:
        """The input of an aggregate: TRUE for `f(*)`, the value, or a tuple of several."""
        span = args[0].span if args else Span(0, 0)
        return self._once(
            definition.name, args, lambda: self.define(argument_text(self.writer, definition, args), span)
        )

    def row(self, items: Sequence[ItemPlan], columns: Sequence[Columns]) -> EventFunction:
        """The output row of an event: a dict of the visible items, in order."""
        source = SourceWriter()
        loop = self.loop(source, {("event_time", None): Code("x.time_ms", False, True, NUMBER)})
        with source.block("def row(x):"):
            source.line("e = x.row")
            write_items(loop, items, columns, "return ", "")
        row: EventFunction = self.generate(source)["row"]
        return row

    def failure(self, error: BaseException, code: Generated | None = None) -> DataError:
        """The error with the position of the expression it came from, perhaps in the text of `code`."""
        line = None if code is None else code.line_of(error)
        if code is not None and line is not None and line in code.spans:
            return positioned(error, code.spans[line], self.text)
        trace = error.__traceback__
        while trace is not None:
            name = trace.tb_frame.f_code.co_filename
            span = self.lines.get((name, trace.tb_lineno)) or self.spans.get(name)
            if span is not None:
                return positioned(error, span, self.text)
            trace = trace.tb_next
        if not isinstance(error, DataError):
            return DataError(str(error))
        return error if error.span is None else positioned(error, error.span, self.text)


def argument_text(writer: ExpressionWriter, definition: Aggregate, args: tuple[Bound, ...]) -> str:
    """The text of an aggregate's input: TRUE for `f(*)`, the value, or a tuple of several."""
    if not args:
        return "True"
    texts = [writer.text(arg) for arg in args]
    several = len(definition.parameters) - definition.constants > 1 or any(
        p.variadic for p in definition.parameters
    )
    return f"({', '.join(texts)},)" if several and not (definition.whole_row and len(args) == 1) else texts[0]


def constant_value(node: Bound | None, functions: FunctionSet) -> Any:
    """The value of an expression that reads no event, with the current values of variables."""
    if node is None or isinstance(node, Const):
        return None if node is None else node.value
    return functions.value(node)(None)
