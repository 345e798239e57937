"""Declarations of streams, schemas and variables."""

from __future__ import annotations

from typing import Literal

from sqlglot import Token, TokenType

from sql.language.contexts.context_parser import ContextGrammar
from sql.language.statements.select_parser import SelectParser
from sql.syntax import (
    ColumnDefinition,
    ColumnType,
    CreateExpression,
    CreateStream,
    CreateVariable,
    Option,
    Statement,
)
from sql.types import type_named

NOT_YET = frozenset({"dataflow", "xml"})
"""The objects of EPL's `create` that this parser only recognises."""

HELD_AS = frozenset({"map", "objectarray", "json", "avro"})
"""The words before SCHEMA that say how Esper holds events of the type. Here all events are rows."""

JAVA_CLASSES = {
    **dict.fromkeys(("Map", "HashMap", "LinkedHashMap"), "object"),
    **dict.fromkeys(("Character", "UUID", "URI", "URL"), "string"),
    **dict.fromkeys(("Date", "Calendar", "LocalDateTime", "ZonedDateTime", "OffsetDateTime"), "datetime"),
    "Number": "number",
}
"""What columns of Java classes hold, where the class is not named like a type."""

DECLARED: dict[str, Literal["stream", "table", "schema"]] = {
    "stream": "stream",
    "table": "table",
    "schema": "schema",
}
CREATED = ("stream", "table", "window", "index", "schema", "variable", "context", "expression")
"""The words that may stand behind CREATE."""


class DefinitionParser(SelectParser):
    """The parser of statements that are no queries."""

    def _create(self) -> Statement:
        start = self._take()
        constant = self._match_word("constant") or self._match_word("const")
        if self._match_word("variable"):
            return self._create_variable(start, constant)
        word = self._word()
        if word in HELD_AS and self._next.text.lower() == "schema":
            self._advance()
            word = self._word()
        if word == "context" and not constant:
            self._advance()
            return ContextGrammar(self).create(start)
        if word == "expression" and not constant:
            return self._declared_expression(start)
        if word in NOT_YET:
            self._unsupported(f"create {word}", self._curr)
        kind = None if constant else DECLARED.get(word)
        if kind is None:
            self._unexpected(", ".join(CREATED).upper(), meant=CREATED)
        self._advance()
        return self._create_stream(start, kind)

    def _declared_expression(self, start: Token) -> CreateExpression:
        """`expression name { body }`, `expression name { (x, y) => body }`,
        `expression name alias for { body }`."""
        self._advance()
        self._refuse_script()
        name = self._name("the name of the expression").text
        if self._match_word("alias") and not self._match_word("for"):
            self._unexpected("FOR behind ALIAS")
        self._expect(TokenType.L_BRACE, "'{', the expression, and '}'")
        parameters = self.calls.lambda_parameters() or ()
        body = self._expression()
        self._expect(TokenType.R_BRACE, "'}' behind the expression")
        return CreateExpression(name, body, parameters, span=self._since(start))

    def _refuse_script(self) -> None:
        """Refuse EPL's `expression [type] dialect:name(a, b) [ script ]`: its body is no SQL."""
        opening = (TokenType.L_BRACE, TokenType.L_BRACKET, TokenType.COLON)
        ahead = (token.token_type for token in self._tokens[self._index :])
        if next((kind for kind in ahead if kind in opening), TokenType.L_BRACE) is not TokenType.L_BRACE:
            hint = (
                "write a function in a Python file beside the rules, or expression name { (x) => … } in SQL"
            )
            self._unsupported("a script as an expression", self._curr, hint)

    def _create_variable(self, start: Token, constant: bool) -> CreateVariable:
        type_name = self._any_name("a type").text
        type_name = type_name.lower() if type_named(type_name) else type_name
        array = self._match_pair(TokenType.L_BRACKET, TokenType.R_BRACKET) is True
        name = self._name("the name of the variable").text
        value = self._expression() if self._match(TokenType.EQ) else None
        return CreateVariable(name, type_name, value, constant, array, span=self._since(start))

    def _create_stream(self, start: Token, kind: Literal["stream", "table", "schema"]) -> CreateStream:
        name = self._name(f"the name of the {kind}")
        if kind == "schema":
            return self._schema(name, start)
        columns = self._wrapped(lambda: self._column_definition(kind), trailing_comma=True)
        options: tuple[Option, ...] = ()
        if self._match_word("with"):
            options = self._options()
        return CreateStream(name.text, columns, options, kind, span=self._since(start))

    def _schema(self, name: Token, start: Token) -> CreateStream:
        """`create schema Name [as] (columns) | A, B [inherits A, B] [copyfrom A]`."""
        self._match(TokenType.ALIAS)
        like: list[str] = []
        columns: tuple[ColumnDefinition, ...] = ()
        if self._curr.token_type is TokenType.L_PAREN:
            columns = self._wrapped(lambda: self._column_definition("schema"))
        else:
            like += self._listed(lambda: self._name("a schema or '('").text)
        inherits: list[str] = []
        while self._at_word("inherits", "copyfrom"):
            names = inherits if self._at_word("inherits") else like
            self._advance()
            names += self._listed(lambda: self._name("a schema").text)
        return CreateStream(
            name.text, columns, (), "schema", tuple(like), tuple(inherits), span=self._since(start)
        )

    def _column_definition(self, kind: str) -> ColumnDefinition:
        name = self._name("a column")
        column_type = self._column_type(kind)
        default = (
            self.literals.written_out("a constant after DEFAULT") if self._match_word("default") else None
        )
        return ColumnDefinition(name.text, column_type, default, span=self._since(name))

    def _column_type(self, kind: str) -> ColumnType:
        """`bigint`, `array(t)`, `struct(a t, …)`, and EPL's `t[]` and `java.lang.String`."""
        with self._nested():
            start = self._any_name("a type")
            name = start.text.lower() if type_named(start.text) else self._java_type(start)
            if name == "array":
                self._expect(TokenType.L_PAREN, "'(' and the type of the elements, as in array(bigint)")
                element = self._column_type(kind)
                self._expect(TokenType.R_PAREN, "')'")
                return ColumnType(name, element, span=self._since(start))
            if name == "struct":
                fields = self._wrapped(lambda: self._column_definition(kind), trailing_comma=True)
                return ColumnType(name, fields=fields, span=self._since(start))
            found = ColumnType(name, span=self._since(start))
            while self._match_pair(TokenType.L_BRACKET, TokenType.R_BRACKET):
                found = ColumnType("array", found, span=self._since(start))
            return found

    def _java_type(self, start: Token) -> str:
        """The type that the name of a Java class stands for, with its package; any other name as it is."""
        path = start.text
        while self._match(TokenType.DOT):
            path += f".{self._any_name('the rest of the name of a class').text}"
        package, _, name = path.rpartition(".")
        of_java = package.startswith("java.")
        return JAVA_CLASSES.get(name, name.lower() if type_named(name) else path) if of_java else path

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
        value = self.literals.written_out("a string, a number, TRUE or FALSE")
        return Option(key.text.upper(), value, span=self._since(key))
