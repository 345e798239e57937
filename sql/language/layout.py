"""One layout for queries: one clause per line. Only white space changes; words stay unchanged."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import Token, TokenType

from sql.language.reading import tokens_of
from sql.language.tokens import NAME_TOKENS

CLAUSES = frozenset({"group", "having", "order", "limit", "output", "retain"})
STATEMENTS = frozenset({"on", "create", "into", "update", "delete"})
"""First words of statements whose layout stays unchanged: the author's lines are better than any rule."""
JOINS = frozenset({"inner", "left", "right", "full", "cross", "join"})
BEGINNINGS = frozenset({TokenType.SELECT, TokenType.FROM, TokenType.WHERE})
_ENDS_VALUE = NAME_TOKENS | {
    TokenType.NUMBER,
    TokenType.STRING,
    TokenType.R_PAREN,
    TokenType.R_BRACKET,
    TokenType.STAR,
    TokenType.TRUE,
    TokenType.FALSE,
    TokenType.NULL,
}
_OPENING, _CLOSING = ("(", "["), (")", "]")


def laid_out(text: str, width: int = 100) -> str | None:
    """The text with one clause per line, and longer clauses broken at commas and ANDs; None if it has
    comments, whose places a rule cannot choose. Raises SqlError if the text cannot be cut into tokens.

    >>> print(laid_out("SELECT a ,b FROM s   WHERE a > 1"))
    SELECT a, b
    FROM s
    WHERE a > 1
    """
    tokens = tokens_of(text)
    if any(token.comments for token in tokens) or (tokens and tokens[0].text.lower() in STATEMENTS):
        return None
    lines: list[str] = []
    for clause in _clauses(tokens):
        lines += _broken(clause, text, width)
    return "\n".join(lines)


def on_one_line(text: str) -> str | None:
    """The text on one line, with single blanks; None if it has comments."""
    tokens = tokens_of(text)
    return None if any(token.comments for token in tokens) else _joined(tokens, text)


def _clauses(tokens: Sequence[Token]) -> list[list[Token]]:
    """The tokens, cut at the clauses outside of all brackets."""
    clauses: list[list[Token]] = [[]]
    depth = 0
    for at, token in enumerate(tokens):
        if depth == 0 and clauses[-1] and _begins(tokens, at):
            clauses.append([])
        depth += (token.text in _OPENING and token.token_type is not TokenType.STRING) - (
            token.text in _CLOSING
        )
        clauses[-1].append(token)
    return clauses


def _begins(tokens: Sequence[Token], at: int) -> bool:
    token, before = tokens[at], tokens[at - 1]
    if token.token_type in BEGINNINGS:
        return True
    if token.token_type not in NAME_TOKENS or before.token_type not in _ENDS_VALUE:
        return False
    word = token.text.lower()
    is_call = at + 1 < len(tokens) and tokens[at + 1].token_type is TokenType.L_PAREN
    return not is_call and (
        word in CLAUSES or (word in JOINS and before.text.lower() not in JOINS | {"outer"})
    )


def _broken(clause: Sequence[Token], text: str, width: int) -> list[str]:
    """A clause as lines: one, or several cut before AND and OR and behind commas outside brackets."""
    whole = _joined(clause, text)
    if len(whole) <= width:
        return [whole]
    parts: list[list[Token]] = [[]]
    depth = is_range = 0
    for token in clause:
        is_logic = token.token_type in (TokenType.AND, TokenType.OR) and not is_range
        if depth == 0 and is_logic and parts[-1]:
            parts.append([])
        is_range = token.token_type is TokenType.BETWEEN or (
            bool(is_range) and token.token_type is not TokenType.AND
        )
        depth += (token.text in _OPENING and token.token_type is not TokenType.STRING) - (
            token.text in _CLOSING
        )
        parts[-1].append(token)
        if depth == 0 and token.token_type is TokenType.COMMA:
            parts.append([])
    shown = [_joined(part, text) for part in parts if part]
    lines = [shown[0]]
    for part in shown[1:]:
        if len(lines[-1]) + 1 + len(part) <= width:
            lines[-1] += f" {part}"
        else:
            lines.append(f"  {part}")
    return lines


def _joined(tokens: Sequence[Token], text: str) -> str:
    out = ""
    for before, token in zip([None, *tokens], tokens, strict=False):
        blank = "" if before is None or not _needs_blank(before, token) else " "
        out += blank + text[token.start : token.end + 1]
    return out


def _needs_blank(before: Token, token: Token) -> bool:
    if token.token_type in (TokenType.COMMA, TokenType.R_PAREN) or before.token_type is TokenType.L_PAREN:
        return False
    return before.token_type is TokenType.COMMA or token.start > before.end + 1
