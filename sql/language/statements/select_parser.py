"""SELECT in the three languages, and `from … select` of stream queries."""

from __future__ import annotations

from typing import Any, Literal

from sqlglot import Token, TokenType

from sql.language.cursor import span_of, word_of
from sql.language.statements.output_parser import OutputGrammar
from sql.language.statements.source_parser import SourceParser
from sql.syntax import (
    Expr,
    GroupingSets,
    GroupWindow,
    InsertInto,
    Join,
    Select,
    SelectItem,
    Source,
)
from sql.syntax.select import GroupingKind
from sql.syntax.window_words import GROUP_WINDOWS

Selector = Literal["istream", "rstream", "irstream"]

SPREADS: dict[str, GroupingKind] = {"rollup": "rollup", "cube": "cube"}

SELECTORS: dict[str, Selector] = {"istream": "istream", "rstream": "rstream", "irstream": "irstream"}

_NOT_AFTER_SELECTOR = frozenset(
    {
        TokenType.COMMA,
        TokenType.FROM,
        TokenType.ALIAS,
        TokenType.DOT,
        TokenType.ARROW,
        TokenType.EQ,
        TokenType.SENTINEL,
    }
)
_CLAUSES = {
    "where": "WHERE",
    "group": "GROUP BY",
    "having": "HAVING",
    "output": "OUTPUT",
    "order": "ORDER BY",
    "limit": "LIMIT",
}
"""Clauses after FROM by their first word, in their required order."""


class SelectParser(SourceParser):
    """The parser of SELECT. The order of clauses: FROM, WHERE, GROUP BY, HAVING, OUTPUT, ORDER BY, LIMIT."""

    def _parse_select(self, *args: Any, **kwargs: Any) -> Any:
        """A query without INSERT INTO and annotations, e.g. a subquery."""
        with self._nested():
            return self._select(None)

    def _select(self, insert_into: InsertInto | None) -> Select:
        start = self._curr
        self._expect(TokenType.SELECT, "SELECT")
        return self._selected(start, insert_into)

    def _selected(self, start: Token, insert_into: InsertInto | None) -> Select:
        """All of a query after the word SELECT."""
        selector = self._selector()
        distinct = self._match(TokenType.DISTINCT)
        items = self._listed(self._select_item)
        source: Source | None = None
        joins: tuple[Join, ...] = ()
        if self._match(TokenType.FROM):
            source, joins = self._sources()
        where = self._where()
        group_by, windows = self._grouping()
        having = self._expression() if self._match_word("having") else None
        output = OutputGrammar(self).output_limit() if self._at_word("output") else None
        order_by = self._listed(self.calls.ordering) if self._match_word("order", "by") else ()
        limit, offset = self._limit()
        self._refuse_misplaced_clause()
        return Select(
            items, source, joins, where, group_by, windows, having, order_by, limit, offset, output, distinct,
            selector, insert_into, span=self._since(start),
        )  # fmt: skip

    def _lots(self) -> Select:
        """`from item in stream … [where] [group by] [having] select [rstream] expr`."""
        start = self._curr
        self._expect(TokenType.FROM, "FROM")
        source, joins = self._lot_sources()
        where = self._where()
        group_by = self._listed(self._key) if self._match_word("group", "by") else ()
        having = self._expression() if self._match_word("having") else None
        if not self._match(TokenType.SELECT):
            self._unexpected("SELECT or a clause before it")
        selector = self._selector()
        items = self._listed(self._select_item)
        return Select(
            items,
            source,
            joins,
            where,
            group_by,
            having=having,
            selector=selector,
            lots=True,
            span=self._since(start),
        )

    def _selector(self) -> Selector | None:
        """ISTREAM, RSTREAM or IRSTREAM, unless the word is a column or the call `istream()`."""
        selector = SELECTORS.get(self._word())
        if selector is None or self._next.token_type in _NOT_AFTER_SELECTOR:
            return None
        if self._next.token_type is TokenType.L_PAREN and self._after_next() is TokenType.R_PAREN:
            return None
        self._advance()
        return selector

    # --- items ----------------------------------------------------------------------------------------------

    def _select_item(self) -> SelectItem:
        start = self._curr
        if start.token_type is TokenType.STAR or self.calls.at_qualified_star():
            star = self.calls.star()
            whole = star.table is not None and not (star.excluded or star.replaced)
            alias = self._alias() if whole and self._curr.token_type is TokenType.ALIAS else None
            return SelectItem(star, alias, text=self._text_since(start), span=star.span)
        node = self._expression()
        text = self._text_since(start)
        alias = self._alias()
        invisible = self._match_word("invisible")
        return SelectItem(node, alias, invisible, text, span=self._since(start))

    # --- clauses --------------------------------------------------------------------------------------------

    def _where(self) -> Expr | None:
        return self._expression() if self._match(TokenType.WHERE) else None

    def _grouping(self) -> tuple[tuple[Expr, ...], tuple[GroupWindow, ...]]:
        """GROUP BY: expressions and eKuiper's windows, in any order."""
        if not self._match_word("group", "by"):
            return (), ()
        found = self._listed(lambda: self._group_window() or self._key())
        windows = tuple(item for item in found if isinstance(item, GroupWindow))
        return tuple(item for item in found if isinstance(item, Expr)), windows

    def _key(self) -> Expr:
        return self._grouping_sets() or self._expression()

    def _grouping_sets(self) -> GroupingSets | None:
        """`rollup(…)`, `cube(…)`, `grouping sets(…)`."""
        start = self._curr
        kind = SPREADS.get(self._word()) if self._next.token_type is TokenType.L_PAREN else None
        if kind is not None:
            self._advance()
        elif self._match_word("grouping", "sets"):
            kind = "grouping sets"
        else:
            return None
        with self._nested():
            of_sets = kind == "grouping sets"
            parts = self._wrapped(lambda: (self._grouping_sets() if of_sets else None) or self._key_set())
        return GroupingSets(kind, parts, span=self._since(start))

    def _key_set(self) -> Expr:
        """A key, or several in parentheses, perhaps none."""
        start, index = self._curr, self._index
        if start.token_type is TokenType.L_PAREN:
            keys = self._wrapped(self._expression)
            if self._curr.token_type in (TokenType.COMMA, TokenType.R_PAREN):
                return GroupingSets("keys", keys, span=self._since(start))
            self._retreat(index)  # parentheses of an expression
        return self._expression()

    def _group_window(self) -> GroupWindow | None:
        name = GROUP_WINDOWS.get(self._word())
        if name is None or self._next.token_type is not TokenType.L_PAREN:
            return None
        start = self._take()
        args = self._wrapped(self._expression)
        condition, over = self.calls.filter_and_over()
        return GroupWindow(name, args, condition, over, span=self._since(start))

    def _limit(self) -> tuple[Expr | None, Expr | None]:
        if not self._match_word("limit"):
            return None, None
        limit = self._expression()
        if self._curr.token_type is TokenType.COMMA:
            hint = "write LIMIT rows OFFSET skipped"
            self._refuse("P001", "LIMIT with a comma can be read in two ways", span_of(self._curr), hint)
        return limit, self._expression() if self._match_word("offset") else None

    def _refuse_misplaced_clause(self) -> None:
        word = self._word()
        if word in _CLAUSES and (word not in ("group", "order") or word_of(self._next) == "by"):
            later = [_CLAUSES[name] for name in list(_CLAUSES)[list(_CLAUSES).index(word) + 1 :]]
            hint = f"write it once, before {', '.join(later)}" if later else "write it once"
            self._refuse("P009", f"{_CLAUSES[word]} stands twice or too late", span_of(self._curr), hint)

    def _insert_into(self) -> InsertInto:
        """`insert [istream|rstream|irstream] into stream [(columns)]`."""
        start = self._take()
        selector = SELECTORS.get(self._word())
        if selector is not None:
            self._advance()
        self._expect_word("into")
        stream = self._name("a stream")
        columns = self._named_columns()
        return InsertInto(stream.text, selector or "istream", columns, span=self._since(start))

    def _named_columns(self) -> tuple[str, ...]:
        """`(columns)` where they stand, each once."""
        names: list[str] = []
        if self._curr.token_type is not TokenType.L_PAREN:
            return ()
        for column in self._wrapped(lambda: self._name("a column")):
            if column.text in names:
                message = f"column '{column.text}' stands twice"
                self._refuse("P013", message, span_of(column), "keep one of them")
            names.append(column.text)
        return tuple(names)
