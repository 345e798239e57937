"""Common mistakes in patterns, and what is written instead: hints of syntax errors."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import Token, TokenType

ARROW = "write ->, which means 'followed by'"


def pattern_habit(tokens: Sequence[Token], at: int) -> str | None:
    """The substitute for the token at `at`, where it stands in a pattern or right behind one."""
    words = [token.text.lower() for token in tokens]
    opened = [words[i + 1] for i in range(at - 1) if words[i] == "pattern"]
    if at >= len(words) or not any(sign in _OPENINGS for sign in opened):
        return None
    word, behind = words[at], words[at + 1 : at + 3]
    if tokens[at].token_type is TokenType.DASH or word in _ARROWS:
        return ARROW
    if "(" in opened:  # PATTERN ( … ) WITHIN d, and match_recognize
        return None
    if word == "within":
        return "write where timer:within(5 sec)"
    if words[at - 2 : at + 1] == ["where", "timer", ":"]:
        return "a guard stands inside the brackets of the pattern, behind the step that it bounds"
    if word == "timer" and behind[:1] == [":"] and behind[1:] in (["within"], ["withinmax"]):
        return f"a guard stands behind WHERE: where timer:{behind[1]}(5 sec)"
    if word == "while":
        return "the condition stands in parentheses: while (a.n < 5)"
    if words[at - 3 : at - 1] == ["timer", ":"] and tokens[at].token_type is TokenType.NUMBER:
        return f"write timer:{tokens[at - 1].text}({' '.join(words[at : at + 2])})"
    return None


_OPENINGS = ("[", "(", "@")
"""What follows the word `pattern` where it begins one."""

_ARROWS = ("=>", "then", "followed")
"""What is written for the arrow by mistake."""
