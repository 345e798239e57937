"""Statements that are no queries: CREATE STREAM and TABLE, create schema and variable, on … set, update istream."""

from __future__ import annotations

from typing import Literal

from sqlglot import Token, TokenType

from sql.language.cursor import span_of
from sql.language.select import SelectParser
from sql.syntax import (
    ColumnDefinition,
    ColumnType,
    CreateStream,
    CreateVariable,
    OnSet,
    Option,
    Statement,
    UpdateStream,
)

NOT_YET = frozenset({"window", "expression", "index", "dataflow", "map", "objectarray", "json", "avro", "xml"})
"""What EPL can create and this parser only recognises."""


class DefinitionParser(SelectParser):
    """Everything that is not a query."""

    def _create(self) -> Statement:
        start = self._take()
        constant = self._match_word("constant")
        if self._match_word("variable"):
            return self._create_variable(start, constant)
        word = self._word()
        if word == "context" and not constant:
            self._advance()
            return self._create_context(start)
        if word in NOT_YET:
            self._unsupported(f"create {word}", self._curr)
        if constant or word not in ("stream", "table", "schema"):
            self._unexpected("STREAM, TABLE, SCHEMA, VARIABLE or CONTEXT")
        self._advance()
        kind: Literal["stream", "table", "schema"] = word  # type: ignore[assignment]
        return self._create_stream(start, kind)

    def _create_context(self, start: Token) -> Statement:
        raise NotImplementedError  # sql.language.contexts knows how

    def _create_variable(self, start: Token, constant: bool) -> CreateVariable:
        type_name = self._any_name("a type").text.lower()
        if self._match(TokenType.L_BRACKET):
            self._unsupported("a variable that is an array", self._prev)
        name = self._name("the name of the variable").text
        value = self._expression() if self._match(TokenType.EQ) else None
        return CreateVariable(name, type_name, value, constant, span=self._since(start))

    def _create_stream(self, start: Token, kind: Literal["stream", "table", "schema"]) -> CreateStream:
        name = self._name(f"the name of the {kind}")
        if kind == "schema":
            self._match(TokenType.ALIAS)
        if self._curr.token_type is not TokenType.L_PAREN and kind == "schema":
            self._unsupported("a schema from another type", self._curr or self._prev, "list its columns")
        columns = self._wrapped(lambda: self._column_definition(kind), trailing_comma=True)
        options: tuple[Option, ...] = ()
        if kind != "schema" and self._match_word("with"):
            options = self._options()
        elif kind == "table":
            hint = f'a lookup table is CREATE TABLE {name.text} (…) WITH (DATASOURCE="…")'
            self._unsupported("create table without WITH", name, hint)
        return CreateStream(name.text, columns, options, kind, span=self._since(start))

    def _column_definition(self, kind: str) -> ColumnDefinition:
        name = self._name("a column")
        column_type = self._column_type(kind)
        if self._at_word("primary"):
            self._unsupported("a table with a primary key", self._curr)
        default = self._literal("a constant after DEFAULT") if self._match_word("default") else None
        return ColumnDefinition(name.text, column_type, default, span=self._since(name))

    def _column_type(self, kind: str) -> ColumnType:
        """`bigint`, `array(t)`, `struct(a t, …)`, and EPL's `t[]`."""
        with self._nested():
            start = self._any_name("a type")
            name = start.text.lower()
            if name == "array":
                self._expect(TokenType.L_PAREN, "'(' and the type of the elements")
                element = self._column_type(kind)
                self._expect(TokenType.R_PAREN, "')'")
                return ColumnType(name, element, span=self._since(start))
            if name == "struct":
                fields = self._wrapped(lambda: self._column_definition(kind), trailing_comma=True)
                return ColumnType(name, fields=fields, span=self._since(start))
            if self._curr.token_type is TokenType.L_PAREN and kind == "table":
                self._unsupported("a column that aggregates", start)
            plain = ColumnType(name, span=span_of(start))
            if self._match_pair(TokenType.L_BRACKET, TokenType.R_BRACKET):
                return ColumnType("array", plain, span=self._since(start))
            return plain

    def _options(self) -> tuple[Option, ...]:
        options = self._wrapped(self._option, trailing_comma=True)
        seen: set[str] = set()
        for option in options:
            if option.key in seen:
                self._refuse("P013", f"option {option.key} stands twice", option.span, "keep one of them")
            seen.add(option.key)
        return options

    def _option(self) -> Option:
        key = self._any_name("the name of an option")
        self._expect(TokenType.EQ, "'='")
        value = self._literal("a string, a number, TRUE or FALSE")
        return Option(key.text.upper(), value, span=self._since(key))

    # --- on, update ---------------------------------------------------------------------------------------------------

    def _on(self) -> OnSet:
        start = self._take()
        source = self._stream_source()
        if self._curr.token_type is TokenType.SELECT or self._at_word("delete", "merge", "update", "insert"):
            self._unsupported(f"on … {self._curr.text.lower()}", self._curr)
        self._expect_word("set")
        return OnSet(source, self._listed(self._assignment), span=self._since(start))

    def _update(self) -> UpdateStream:
        start = self._take()
        if not self._match_word("istream"):
            self._unsupported("update of anything but an insert stream", start, "write UPDATE ISTREAM stream SET …")
        stream = self._name("a stream").text
        if self._match(TokenType.ALIAS):
            self._unsupported("an alias in UPDATE ISTREAM", self._prev)
        self._expect_word("set")
        assignments = self._listed(self._assignment)
        where = self._expression() if self._match(TokenType.WHERE) else None
        return UpdateStream(stream, assignments, where, span=self._since(start))
