"""The dialect: the parsers of statements by first word, and sqlglot's entry to our tokenizer and parser."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from sqlglot import Token, TokenType
from sqlglot.dialects.dialect import Dialect

from sql.errors import Span, did_you_mean
from sql.language.cursor import span_of
from sql.language.statements.relation_parser import RelationParser
from sql.language.tokens import NAME_TOKENS, StreamTokenizer
from sql.record import replace
from sql.syntax import Annotation, Column, CreateContext, CreateExpression, Statement
from sql.syntax.declared_expressions import written_out

OF_MODULES = ("import", "module", "uses")
"""The first words of what says something about a module of EPL, and is no statement."""

PROMPT = {
    "drop": "remove the definition from its file; the prompt `penstock sql` knows DROP",
    "show": "the prompt `penstock sql` knows SHOW",
    "describe": "the definition stands in its file; the prompt `penstock sql` knows DESCRIBE",
    "explain": "`penstock explain FILE` shows the plan of a rule; the prompt `penstock sql` knows EXPLAIN",
}
"""eKuiper's statements that query or change the server, and the substitute for each."""


class StreamParser(RelationParser):
    """The parser of one statement of any of the three languages."""

    PRIMARY_PARSERS: ClassVar[Any] = {
        **RelationParser.PRIMARY_PARSERS,
        TokenType.PLACEHOLDER: lambda self, token: Column(f"?{token.start}", span=span_of(token)),
        TokenType.COLON: lambda self, token: self._named_parameter(token),
    }
    """sqlglot's operands, and parameters of on-demand queries as columns with otherwise impossible names."""

    def _named_parameter(self, colon: Token) -> Column:
        return Column(f":{self._name('the name of a parameter').text}", span=self._since(colon))

    def _parse_statement(self) -> Any:
        start = self._curr
        annotations = self._annotations()
        statement = self._bare_statement()
        return replace(statement, annotations=annotations, span=self._since(start))

    def _bare_statement(self) -> Statement:
        word = self._word()
        if word in STATEMENTS:
            return STATEMENTS[word](self)
        if word in PROMPT:
            self._refuse(
                "P014",
                f"{word.upper()} is a command of eKuiper's shell, no statement of a rule file",
                span_of(self._curr),
                PROMPT[word],
            )
        if word in OF_MODULES:
            remedy = "`penstock import epl MODULE.epl` makes a rule file of a module; leave it out here"
            self._unsupported(word, self._curr, remedy)
        if not self._curr:
            self._unexpected("a statement")
        if word == "with":
            self._unsupported("WITH", self._curr, "make the inner SELECT a rule that inserts into a stream")
        hint = did_you_mean(word, STATEMENTS) if word else None
        if word == "stream":  # Apama's `stream<float> means := from …`
            hint = "a query names its stream before FROM: INSERT INTO means FROM …"
        known = ", ".join(name.upper() for name in STATEMENTS)
        return self._refuse("P010", f"a statement begins with {known}", span_of(self._curr), hint)

    def _with_expressions(self) -> Statement:
        """`expression name { … }` before a statement, once or several times:
        known in this statement alone."""
        known: dict[str, CreateExpression] = {}
        while self._at_word("expression"):
            found = self._declared_expression(self._curr)
            if found.name in known:
                self._refuse("P009", f"expression '{found.name}' stands twice", found.span)
            known[found.name] = written_out(found, known, self.sql, is_here=True)
        statement: Statement = written_out(self._bare_statement(), known, self.sql, is_here=True)
        return statement

    def _in_context(self) -> Statement:
        """`context name` before a statement that runs once per partition of the context."""
        start = self._take()
        name = self._name("the name of a context")
        if self._word() not in STATEMENTS or self._at_word("context", "update"):
            self._unexpected("SELECT, INSERT INTO, ON or CREATE after the name of the context")
        statement = self._bare_statement()
        if isinstance(statement, CreateContext):
            self._refuse(
                "P020", "a context is declared for all partitions: it cannot stand in one", span_of(start)
            )
        return replace(statement, context=name.text, context_span=span_of(name))

    def _insert(self) -> Statement:
        """`insert into stream` before a query of any of the languages, or before rows of values."""
        start = self._curr
        target = self._insert_into()
        if self._at_word("values"):
            return self._insert_values(target, start)
        return replace(self._lots(), insert_into=target) if self._at_word("from") else self._select(target)

    def _annotations(self) -> tuple[Annotation, ...]:
        """`@name('s0') @public …`."""
        found: list[Annotation] = []
        while self._curr.token_type is TokenType.PARAMETER:
            start = self._take()
            name = self._any_name("the name of an annotation").text.lower()
            while self._match(TokenType.DOT):
                name = self._any_name("the name of an annotation").text.lower()
            behind: Token = self._curr
            given = self._wrapped(self._attribute) if behind.token_type is TokenType.L_PAREN else []
            found.append(self._annotation(name, given, self._since(start)))
        return tuple(found)

    def _annotation(self, name: str, given: Sequence[tuple[str, Any]], span: Span) -> Annotation:
        """An annotation with the attributes that are given."""
        attributes = dict(given)
        if len(attributes) < len(given):
            self._refuse("P001", f"@{name} has one value, and each further attribute a name", span)
        value = attributes.get("value")
        wanted, words = VALUES.get(name, (None, ""))
        if wanted is not None and value.__class__ is not wanted:
            self._refuse("P001", f"@{name} takes {words}", span)
        return Annotation(name, value, span=span)

    def _attribute(self) -> tuple[str, None | bool | int | float | str]:
        """`'s0'`, the value of an annotation, or one of several with names: `name='unit', value='bar'`."""
        name = "value"
        if self._next.token_type is TokenType.EQ:
            name = self._any_name("the name of an attribute").text.lower()
            self._expect(TokenType.EQ, "'='")
        return name, self._attribute_value()

    def _attribute_value(self) -> None | bool | int | float | str:
        """A constant, or a name, as of an enumeration or a class, which is text. Of an array, `{…}`, no
        annotation here reads anything."""
        if self._match(TokenType.L_BRACE):
            self._listed(self._attribute_value)
            self._expect(TokenType.R_BRACE, "',' or '}'")
            return None
        if self._curr.token_type in NAME_TOKENS:
            path = self._take().text
            while self._match(TokenType.DOT):
                path += f".{self._any_name('the rest of the name').text}"
            return path
        return self.literals.written_out("a constant")


VALUES: dict[str, tuple[type, str]] = {
    "name": (str, "a text, as in @name('hot')"),
    "hint": (str, "a text, as in @hint('reclaim_group_aged=60')"),
    "priority": (int, "a whole number, as in @priority(10)"),
}
"""The annotations that need a value: its type, and how to write it."""

STATEMENTS: dict[str, Callable[[StreamParser], Statement]] = {
    "select": lambda parser: parser._select(None),
    "insert": lambda parser: parser._insert(),
    "from": lambda parser: parser._lots(),
    "create": lambda parser: parser._create(),
    "on": lambda parser: parser._on(),
    "update": lambda parser: parser._update(),
    "context": lambda parser: parser._in_context(),
    "delete": lambda parser: parser._delete(),
    "into": lambda parser: parser._into_table(),
    "expression": lambda parser: parser._with_expressions(),
}
"""Statements by their first word."""


class StreamDialect(Dialect):
    """eKuiper SQL, EPL and stream queries in one."""

    Tokenizer = StreamTokenizer
    Parser = StreamParser
