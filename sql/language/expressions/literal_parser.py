"""Constants: strings, numbers with their suffix, TRUE, FALSE and NULL."""

from __future__ import annotations

from sqlglot import Token, TokenType

from sql.errors import shortened
from sql.language import habits
from sql.language.cursor import Cursor
from sql.language.lexical import unquote
from sql.language.tokens import UNITS, WORD_TOKENS


class LiteralGrammar:
    """The parser of constants."""

    def __init__(self, parser: Cursor) -> None:
        self.parser = parser

    def value(self, token: Token) -> None | bool | int | float | str:
        """The value of a literal token just consumed, with the suffix of a number."""
        if token.token_type is TokenType.STRING:
            return unquote(self.parser.sql[token.start : token.end + 1])
        if token.token_type is TokenType.NUMBER:
            return self._number(token)
        return {TokenType.NULL: None, TokenType.TRUE: True, TokenType.FALSE: False}[token.token_type]

    def _number(self, token: Token) -> int | float:
        parser = self.parser
        suffix, place = "", parser._index - 1
        behind = parser._curr
        is_suffix = behind.token_type in WORD_TOKENS and behind.text.lower() not in UNITS
        if is_suffix and behind.start == token.end + 1:
            suffix = parser._take().text.lower()
        text = token.text
        whole = text.isdecimal() and suffix in ("", "l")
        if suffix not in ("", "l", "d", "f") or (suffix == "l" and not whole):
            shown = parser._text_since(token)
            hint = habits.number_with_unit(parser._tokens, place, token.text, suffix)
            parser._refuse("P008", f"{shortened(shown)!r} is not a number", parser._since(token), hint)
        try:
            value = int(text) if whole else float(text)
        except ValueError:  # an exponent without digits, or more digits than the interpreter converts
            parser._refuse("P008", f"{shortened(text)!r} is not a number", parser._since(token))
        if value in (float("inf"), float("-inf")):
            parser._refuse("P008", f"{shortened(text)!r} is too large for a float", parser._since(token))
        return value

    def written_out(self, expected: str) -> None | bool | int | float | str:
        """A constant that must be written out: a string, a number with a sign, TRUE, FALSE or NULL."""
        parser = self.parser
        negative = parser._match(TokenType.DASH)
        kinds = {TokenType.NUMBER} if negative else _LITERALS
        if parser._curr.token_type not in kinds:
            parser._unexpected(expected)
        value = self.value(parser._take())
        return -value if negative and isinstance(value, (int, float)) else value


_LITERALS = {TokenType.STRING, TokenType.NUMBER, TokenType.NULL, TokenType.TRUE, TokenType.FALSE}
