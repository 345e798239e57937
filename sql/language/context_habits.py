"""Common mistakes in the definition of a context, and what is written instead: hints of syntax errors."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import Token, TokenType

from sql.errors import did_you_mean

OPENERS = ("start", "initiated", "partition", "coalesce", "group")
"""The words that begin a kind of context."""

NESTED = "nested contexts have names: context A partition by …, context B start …"
LABEL = "give the category a label: group by n > 1 as big, group by n <= 1 as small"
GRANULARITY = "say the number of partitions behind the events: granularity 16"


def context_habit(tokens: Sequence[Token], at: int) -> str | None:
    """The substitute for the token at `at`, where it stands in the definition of a context."""
    words = [token.text.lower() for token in tokens]
    start = next((i for i in range(at) if words[i : i + 2] == ["create", "context"]), None)
    openers = [] if start is None else [i for i in range(start + 2, at) if words[i] in OPENERS]
    if not openers:
        return None
    kind = words[openers[0] if words[openers[-1]] == "group" else openers[-1]]
    before, word = words[at - 1], words[at] if at < len(words) else ""
    text = tokens[at].text if word else ""
    if word == "@":
        return _annotation(words, at)
    if at < len(tokens) and tokens[at].token_type is TokenType.NUMBER:
        return _period(before, text, words[at + 1 : at + 2])
    if at < len(tokens) and tokens[at].token_type is TokenType.STRING:
        return "write a crontab in parentheses: (0, 9, *, *, *) is each day at 9:00"
    found = _BEHIND.get((kind, word))
    if found is not None:
        return found
    for taker, by in (words[at - 2 : at], words[at - 3 : at - 1]):  # a name may stand behind them
        if (taker, by) in _TAKES:
            return _TAKES[taker, by]
    if kind == "coalesce" and "granularity" not in words:
        return GRANULARITY
    return _category(before, word) if kind == "group" else None


_BEHIND = {
    ("start", "terminated"): "a partition of START ends with END; TERMINATED BY belongs to INITIATED BY",
    ("start", "and"): "write INITIATED BY @now AND …: START begins one partition at a time",
    ("initiated", "end"): "a partition of INITIATED BY ends with TERMINATED BY; END belongs to START",
    ("partition", "end"): "a partition of PARTITION BY ends with TERMINATED BY; END belongs to START",
}
"""What belongs to another kind of context, by the kind and the word."""

_TAKES = {
    ("start", "by"): "START takes no BY",
    ("end", "by"): "END takes no BY",
    ("partition", "on"): "write PARTITION BY",
}


def _annotation(words: Sequence[str], at: int) -> str | None:
    """`@inclusiv`, `@nov`, and `start @now` behind a comma: nested contexts have names."""
    if words[at + 1 : at + 2] == ["now"]:
        is_nested = words[at - 2] == "," and words[at - 1] in OPENERS
        return NESTED if is_nested else None
    meant = did_you_mean(words[at + 1] if at + 1 < len(words) else "", ["inclusive", "now"])
    return None if meant is None else meant.replace("'", "'@", 1)


def _period(before: str, number: str, unit: Sequence[str]) -> str:
    """`end 5 sec` and `start every 5 sec`."""
    length = " ".join([number, *unit])
    if before == "every":
        return f"write a pattern: pattern [every timer:interval({length})]"
    return f"write AFTER {length}"


def _category(before: str, word: str) -> str | None:
    """`group by a, group by b as y` and `group by a as x, b as y`."""
    if word in (",", "from", ""):
        return LABEL
    return "each category has a GROUP BY of its own" if before == "," else None
