"""The rule file of an EPL module: each statement under the section of a rule file that declares such things.

Texts stay word for word, so that `check` speaks of what was written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from edge.base.errors import UsageError
from sql import syntax as ast

HEADER = re.compile(
    r"\s*(?:(?://|--)[^\n]*(?:\n|$)|/\*.*?\*/|(?:module|uses|import)\s[^;]*;)", re.DOTALL | re.IGNORECASE
)
"""A comment, the name of the module, or what it uses, before the first statement."""

CONTEXT = re.compile(r"\bcontext\s+\S+\s+(?:as\s+)?", re.IGNORECASE)
"""The words before the definition of a context."""

READERS = (
    *(ast.FilterAtom, ast.UpdateStream),
    *(ast.EventPoint, ast.KeyedType, ast.HashedType, ast.Categories),
)
"""Nodes besides the sources of FROM that name a stream whose events they take."""

Sections = dict[str, Any]


def rule_file(text: str, name: str) -> tuple[Sections, list[str]]:
    """The content of the rule file of a module, and what is left to decide, a line each.

    `name` is that of the module: ids of rules without `@Name` begin with it. Raises UsageError for a text
    that is no EPL.
    """
    statements = _parsed(text, name)
    module = _Module(name, text, statements)
    for statement in statements:
        SECTIONS.get(type(statement), _Module.rule)(module, statement)
    module.add_sources()
    order = ("streams", "variables", "expressions", "contexts", "tables", "rules")
    return {part: module.sections[part] for part in order if module.sections[part]}, module.notes


def _parsed(text: str, name: str) -> list[ast.Statement]:
    """The statements of a module; what is before the first counts as blank, so that places are right."""
    from sql.errors import SqlError
    from sql.language import parse

    begin = 0
    while (header := HEADER.match(text, begin)) is not None:
        begin = header.end()
    try:
        return list(parse(re.sub(r"[^\n]", " ", text[:begin]) + text[begin:]))
    except SqlError as error:
        raise UsageError(f"{name}: {error}") from None


class _Module:
    """The sections of the rule file while it is made."""

    def __init__(self, name: str, text: str, statements: Iterable[ast.Statement]) -> None:
        self.name, self.text = name, text
        self.sections: Sections = {"streams": [], "rules": []}
        self.sections |= {part: {} for part in ("variables", "expressions", "contexts", "tables")}
        self.notes: list[str] = []
        self.declared: set[str] = set()
        nodes = [node for statement in statements for node in statement.walk()]
        self.fed = {node.stream for node in nodes if isinstance(node, ast.InsertInto)}
        self.read = {name for node in nodes for name in _streams_of(node)}
        self.base = {name for node in nodes if isinstance(node, ast.CreateStream) for name in node.inherits}

    def rule(self, statement: ast.Statement) -> None:
        """A rule; its rows go to the log where they go nowhere else."""
        from sql.binder.annotations import name_of

        given = re.sub(r"[^\w.-]+", "_", name_of(statement) or "").strip("_.-")
        rules: list[Sections] = self.sections["rules"]
        name = given or f"{self.name}_{len(rules) + 1}"
        while any(rule["id"] == name for rule in rules):
            name += "_"
        query = statement.select if isinstance(statement, ast.OnSelect) else statement
        shown = isinstance(query, ast.Select) and query.insert_into is None
        rules.append({"id": name, "sql": statement.text, **({"actions": [{"log": {}}]} if shown else {})})

    def schema(self, statement: ast.CreateStream) -> None:
        """A type of events; where nothing inserts any, they come from the topic of its name."""
        self.declared.add(statement.name)
        inner = {*statement.inherits, *statement.like} or statement.name in self.fed | self.base
        if statement.kind != "schema" or inner or not statement.columns:
            self.sections["streams"].append(statement.text)
            return
        columns = self.text[statement.columns[0].span.start : statement.columns[-1].span.end]
        written = f'create stream {statement.name} ({columns}) with (datasource="{statement.name}")'
        self.sections["streams"].append(written)
        self.notes.append(f"stream '{statement.name}' reads the MQTT topic of its name")

    def variable(self, statement: ast.CreateVariable) -> None:
        """A variable with its first value, if that is known and a single one; one of a context stands as text
        among the tables of that context."""
        if statement.context is not None:
            self.sections["tables"][statement.name] = statement.text
            return
        value = _first_value(statement, self.text)
        self.sections["variables"][statement.name] = value
        if value is None and statement.value is not None:
            self.notes.append(f"variable '{statement.name}' has no value: write one under variables")

    def expression(self, statement: ast.CreateExpression) -> None:
        text = statement.text
        self.sections["expressions"][statement.name] = text[text.index("{") + 1 : text.rindex("}")].strip()

    def context(self, statement: ast.CreateContext) -> None:
        from sql.binder.annotations import priority_of

        text = CONTEXT.split(statement.text, maxsplit=1)[1]
        priority = priority_of(statement)
        self.sections["contexts"][statement.name] = {"sql": text, "priority": priority} if priority else text

    def relation(self, statement: ast.CreateWindow | ast.CreateTable) -> None:
        self.declared.add(statement.name)
        self.sections["tables"][statement.name] = statement.text

    def index(self, statement: ast.CreateIndex) -> None:
        """An index stands behind the declaration of its relation."""
        tables = self.sections["tables"]
        if statement.relation in tables:
            tables[statement.relation] += f";\n{statement.text}"
        else:
            self.notes.append(f"index '{statement.name}' is left out: '{statement.relation}' is not declared")

    def add_sources(self) -> None:
        """Streams that the module reads and does not declare, which Java did."""
        for stream in sorted(self.read - self.declared - self.fed):
            self.sections["streams"].append({"name": stream, "datasource": stream})
            self.notes.append(f"stream '{stream}' is written without columns, for the MQTT topic of its name")


def _first_value(statement: ast.CreateVariable, text: str) -> bool | int | float | str | None:
    """The value that a variable begins with; None where it is not known, or not a single one."""
    from sql.binder.statements.variables import declare_variable
    from sql.catalog.streams import Catalog
    from sql.errors import SqlError
    from sql.types import Type

    catalog = Catalog()
    try:
        declare_variable(catalog, statement, text)
    except SqlError:
        return None
    declared = catalog.variables[statement.name]
    value = declared.value if isinstance(declared.value, bool | int | float | str) else None
    return float(value) if declared.type is Type.FLOAT and type(value) is int else value


def _streams_of(node: ast.Node) -> Iterable[str]:
    """The streams that a node of a statement reads itself."""
    if isinstance(node, ast.Source):
        return [node.name] if node.name else []
    return [node.stream] if isinstance(node, READERS) else []


SECTIONS: dict[type[ast.Statement], Callable[[_Module, Any], None]] = {
    ast.CreateStream: _Module.schema,
    ast.CreateVariable: _Module.variable,
    ast.CreateExpression: _Module.expression,
    ast.CreateContext: _Module.context,
    ast.CreateWindow: _Module.relation,
    ast.CreateTable: _Module.relation,
    ast.CreateIndex: _Module.index,
}
"""By the kind of a statement, what puts it into its section; other statements are rules."""
