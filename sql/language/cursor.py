"""The base of all parsers of the language: matching of tokens, and errors about unexpected ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import isfunction
from typing import Any, NoReturn, Self, TypeVar

from sqlglot import Token, TokenType
from sqlglot.parser import Parser

from sql.errors import Span, SqlError, did_you_mean, shortened
from sql.language import habits
from sql.language.tokens import NAME_TOKENS, WORD_TOKENS
from sql.syntax import Expr

Item = TypeVar("Item")

CLAUSE_WORDS = frozenset(
    {
        *(
            "select",
            "from",
            "where",
            "group",
            "having",
            "order",
            "limit",
            "offset",
            "output",
            "every",
            "when",
            "over",
        ),
        *(
            "insert",
            "into",
            "inner",
            "left",
            "right",
            "full",
            "cross",
            "join",
            "filter",
            "partition",
            "match_recognize",
            "retain",
            "within",
        ),
    }
)
"""The keywords that an unexpected word may be a misspelling of."""

OTHER_WORDS = frozenset(
    {"delete", "end", "last", "start", "terminated", "timer", "to", "union", "update", "while", "window"}
)
"""Words of other clauses, which are no misspelling of those."""

_OF_ROWS = "write a rule for each SELECT, with a WHERE that tells their rows apart"

SET_OPERATIONS = {
    "union": "write a rule for each SELECT; they may have the same actions, or insert into one stream",
    "except": _OF_ROWS,
    "intersect": _OF_ROWS,
    "minus": _OF_ROWS,
}
"""Words between two SELECTs, and the substitute for each."""


def span_of(token: Token) -> Span:
    """The characters of one token."""
    return Span(token.start, token.end + 1)


def _misspelt(token: Token) -> str | None:
    """The keyword that a name was probably meant to be."""
    word = token.text.lower()
    known = CLAUSE_WORDS | OTHER_WORDS | habits.GROUP_UNITS.keys()
    if token.token_type is not TokenType.VAR or word in known:
        return None
    return did_you_mean(token.text, CLAUSE_WORDS)


def node_of(parsed: Any) -> Expr:
    """Our node, as returned by a method of sqlglot with its own return type."""
    node: Expr = parsed
    return node


def require_extendable(method: object) -> None:
    """Raises ImportError for a method of a compiled class: only interpreted ones can be extended."""
    if not isfunction(method):
        raise ImportError("the compiled parser of sqlglot cannot be extended; run: pip uninstall sqlglotc")


require_extendable(Parser.__init__)


class Cursor(Parser):
    """sqlglot's parser, with errors that are ours and helpers for clauses that are not SQL's.

    The parsing methods build nodes of `sql.syntax`, not sqlglot's: sqlglot contributes the tokens, the
    machinery of tables from tokens to operators and the order of precedence.
    """

    def read(self, tokens: list[Token], text: str, rule: Callable[[Self], Item]) -> Item:
        """The result of `rule` on all of `tokens`, which were cut from `text`. Raises `SqlError`."""
        self.reset()
        self.sql = text
        self._chunks = [tokens]
        self._advance_chunk()
        try:
            found = rule(self)
            if self._curr:
                self._unexpected_rest()
            return found
        finally:
            self.reset()  # its grammars refer to it: the tokens would wait for the garbage collector

    def raise_error(self, message: str, token: Token | None = None) -> None:
        """Refuse the current token. sqlglot calls this for tokens that it did not expect itself."""
        self._unexpected(None, token)

    def expression(self, instance: Any, token: Token | None = None, comments: list[str] | None = None) -> Any:
        """sqlglot's hook for every operator it builds: our nodes need neither validation nor comments."""
        return instance

    # --- errors ---------------------------------------------------------------------------------------------

    def _refuse(self, code: str, message: str, span: Span, hint: str | None = None) -> NoReturn:
        raise SqlError.of(code, message, span, hint, text=self.sql)

    def _unexpected(
        self, expected: str | None, token: Token | None = None, meant: Iterable[str] = ()
    ) -> NoReturn:
        """Refuse `token` (by default the current one) with P001; `meant`: words that it may be, misspelt."""
        token = token or self._curr
        wanted = f", expected {expected}" if expected else ""
        if not token:
            end = self._tokens[-1].end + 1 if self._tokens else 0
            hint = habits.hint(self._tokens, len(self._tokens))
            self._refuse("P001", f"the statement ends too early{wanted}", Span(end, end), hint)
        shown = self.sql[token.start : token.end + 1]
        hint = habits.hint(self._tokens, habits.place(self._tokens, token, self._index))
        hint = hint or did_you_mean(token.text.lower(), meant) or _misspelt(token)
        hint = hint or habits.as_name(token, expected)
        self._refuse("P001", f"unexpected {shortened(shown)!r}{wanted}", span_of(token), hint)

    def _unexpected_rest(self) -> NoReturn:
        """Refuse what follows a whole statement or expression, with the keyword that was probably meant.

        The word before it may be that keyword too, misspelt and taken for a name.
        """
        token = self._curr
        habit = habits.next_statement(self._tokens, self._index) or habits.hint(self._tokens, self._index)
        # The last word of `retain-union` stands between no SELECTs.
        retains = self._index >= 2 and self._tokens[self._index - 2].token_type is TokenType.DASH
        for word in (self._prev, token):
            is_name = word.token_type is TokenType.IDENTIFIER or (retains and word is not token)
            if word.text.lower() in SET_OPERATIONS and not is_name:
                self._unsupported(word.text.upper(), word, SET_OPERATIONS[word.text.lower()])
            if habit is None and (habit := _misspelt(word)):
                token = word
        shown = shortened(self.sql[token.start : token.end + 1])
        self._refuse("P001", f"unexpected {shown!r} where nothing more can stand", span_of(token), habit)

    def _unsupported(self, construct: str, token: Token, hint: str | None = None) -> NoReturn:
        self._refuse("P090", f"{construct} is not supported yet", span_of(token), hint)

    # --- positions ------------------------------------------------------------------------------------------

    def _since(self, start: Token) -> Span:
        """The span from the first character of `start` to the last token consumed."""
        return Span(start.start, max(self._prev.end, start.end) + 1)

    def _text_since(self, start: Token) -> str:
        return self.sql[start.start : self._prev.end + 1]

    # --- matching -------------------------------------------------------------------------------------------

    def _at_word(self, *words: str) -> bool:
        """True if the current token is one of `words` (lower case), not quoted."""
        return self._word() in words

    def _word(self) -> str:
        """The current word in lower case; empty for a quoted name, which is never a keyword,
        and for anything else."""
        return word_of(self._curr)

    def _after_next(self) -> TokenType | None:
        """The kind of the token after the next one."""
        index = self._index + 2
        return self._tokens[index].token_type if index < self._tokens_size else None

    def _match_word(self, *words: str) -> bool:
        """Consume `words`, one after the other, if all of them follow."""
        if self._curr.text.upper() != words[0].upper():  # mostly: that costs less than the call
            return False
        return self._match_text_seq(*(word.upper() for word in words))

    def _expect_word(self, word: str) -> None:
        if not self._match_word(word):
            self._unexpected(word.upper())

    def _expect(self, token_type: TokenType, shown: str) -> None:
        if not self._match(token_type):
            self._unexpected(shown)

    def _name(self, expected: str) -> Token:
        """Consume a name at a place where keywords keep their meaning."""
        if self._curr.token_type not in NAME_TOKENS:
            self._unexpected(expected)
        return self._take()

    def _any_name(self, expected: str) -> Token:
        """Consume a name at a place where every word is one."""
        if self._curr.token_type not in WORD_TOKENS:
            self._unexpected(expected)
        return self._take()

    def _take(self) -> Token:
        token = self._curr
        self._advance()
        return token

    def _listed(self, parse: Callable[[], Item]) -> tuple[Item, ...]:
        """One or more items separated by commas."""
        items = [parse()]
        while self._match(TokenType.COMMA):
            items.append(parse())
        return tuple(items)

    def _wrapped(
        self, parse: Callable[[], Item], *, trailing_comma: bool = False, some: bool = False
    ) -> tuple[Item, ...]:
        """Items in parentheses, separated by commas; perhaps none, unless `some`. `trailing_comma`: a comma
        may follow the last."""
        self._expect(TokenType.L_PAREN, "'('")
        items: list[Item] = []
        may_end = not some
        while not (self._curr.token_type is TokenType.R_PAREN and may_end):
            items.append(parse())
            may_end = trailing_comma
            if not self._match(TokenType.COMMA):
                break
        self._expect(TokenType.R_PAREN, "',' or ')'")
        return tuple(items)


def word_of(token: Token) -> str:
    """A word in lower case; empty for a quoted name and for anything else."""
    is_word = token.token_type in WORD_TOKENS and token.token_type is not TokenType.IDENTIFIER
    return token.text.lower() if is_word else ""
