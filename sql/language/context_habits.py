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
START = "say behind START what starts a partition: @now, an event, a pattern or a crontab"
CRONTAB = "write a crontab in parentheses: (0, 9, *, *, *) is each day at 9:00"


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
        return _period(words, at, text)
    if at < len(tokens) and tokens[at].token_type is TokenType.STRING:
        return "a label is a name: write it without quotes" if before == "as" else CRONTAB
    found = _BEHIND.get((kind, word))
    if found is not None:
        return found
    for taker, by in (words[at - 2 : at], words[at - 3 : at - 1]):  # a name may stand behind them
        if (taker, by) in _TAKES:
            return _TAKES[taker, by]
    if kind == "coalesce":
        return did_you_mean(word, ["preallocate"]) if "granularity" in words[:at] else GRANULARITY
    return _category(words, at, word) if kind == "group" else None


_BEHIND = {
    ("start", "terminated"): "a partition of START ends with END; TERMINATED BY belongs to INITIATED BY",
    ("start", "and"): "write INITIATED BY @now AND …: START begins one partition at a time",
    ("initiated", "end"): "a partition of INITIATED BY ends with TERMINATED BY; END belongs to START",
    ("partition", "end"): "a partition of PARTITION BY ends with TERMINATED BY; END belongs to START",
    ("partition", "start"): "a partition of PARTITION BY starts with INITIATED BY; START stands alone",
    ("coalesce", "preallocate"): "PREALLOCATE stands behind the number: granularity 16 preallocate",
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
    if words[at + 1 : at + 2] == ["inclusive"]:
        return "@inclusive stands right behind the pattern, before AS"
    meant = did_you_mean(words[at + 1] if at + 1 < len(words) else "", ["inclusive", "now"])
    return None if meant is None else meant.replace("'", "'@", 1)


def _period(words: Sequence[str], at: int, number: str) -> str | None:
    """`end 5 sec`, `start every 5 sec`, `start 0 9 * * *`, and `start end after 5 sec`, where END was read
    as the name of a stream."""
    if words[at - 1] == "after":
        is_without_start = words[at - 3 : at - 1] == ["start", "end"]
        return START if is_without_start else None
    behind = words[at + 1] if at + 1 < len(words) else ""
    if behind == "*" or behind.isdecimal():
        return CRONTAB
    length = f"{number} {behind}".rstrip()
    if words[at - 1] == "every":
        return f"write a pattern: pattern [every timer:interval({length})]"
    return f"write AFTER {length}"


def _category(words: Sequence[str], at: int, word: str) -> str | None:
    """`group by a, group by b as y`, `group by a as x, b as y`, `group by a as x group by b as y`,
    and one without FROM."""
    if words[at - 2] == "as":
        stream = "name the stream behind the categories: group by … as big from m"
        return {"": stream, "group": "a comma is missing before 'group'"}.get(word)
    if word in (",", "from", ""):
        return LABEL
    return "each category has a GROUP BY of its own" if words[at - 1] == "," else None
