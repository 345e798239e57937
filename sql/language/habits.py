"""Constructs of other SQL dialects, and their substitutes here: the hints of syntax errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import Token, TokenType

from sql.errors import did_you_mean
from sql.language.context_habits import context_habit
from sql.language.pattern_habits import pattern_habit
from sql.language.tokens import NAME_TOKENS
from sql.syntax.window_words import GROUP_WINDOWS

GROUP_UNITS = {
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("s", "ss", "sec", "secs", "second", "seconds"), "ss"),
    **dict.fromkeys(("m", "mi", "min", "mins", "minute", "minutes"), "mi"),
    **dict.fromkeys(("h", "hh", "hour", "hours"), "hh"),
    **dict.fromkeys(("d", "dd", "day", "days"), "dd"),
}
"""Common spellings of units, and the unit of a window in GROUP BY."""

PERIOD_UNITS = {"ms": "msec", "ss": "sec", "mi": "min", "hh": "hours", "dd": "days"}
"""The units of windows in GROUP BY, and the corresponding units of periods."""

WINDOWS_ELSEWHERE = {
    "tumble": "TUMBLINGWINDOW({unit}, {length}); '{column}' is named by the stream's key 'timestamp'",
    "hop": "HOPPINGWINDOW({unit}, length, hop); '{column}' is named by the stream's key 'timestamp'",
    "session": (
        "SESSIONWINDOW({unit}, longest, {length}); '{column}' is named by the stream's key 'timestamp'"
    ),
}
"""Windows of Flink and others, and their substitutes here."""

_BEGINNINGS = ("@", "context", "create", "insert", "into", "on", "select")
"""The first words of statements."""

_DOUBLED = {"&": "AND", "|": "OR"}


def hint(tokens: Sequence[Token], at: int) -> str | None:
    """The substitute for the token at `at`, on which the parser failed; None if none is known."""
    return next((found for habit in _HABITS if (found := habit(tokens, at)) is not None), None)


def next_statement(tokens: Sequence[Token], at: int) -> str | None:
    """The hint where a new line begins with a new statement; None where it does not."""
    begins = tokens[at].text.lower() in _BEGINNINGS and at > 0 and tokens[at - 1].line < tokens[at].line
    return "a ; ends each statement: write one before this" if begins else None


def as_name(token: Token, expected: str | None) -> str | None:
    """The hint where a word of the language or a string stands for a name."""
    is_name = token.token_type is TokenType.STRING and "name" in (expected or "")
    if not is_name and (expected != "a name after AS" or not token.text.isidentifier()):
        return None
    return f"between backticks every word is a name: `{token.text}`"


def place(tokens: Sequence[Token], token: Token, near: int) -> int:
    """The index of `token`: beside `near`, or `near` itself."""
    return next(
        (at for at in (near, near - 1, near + 1) if 0 <= at < len(tokens) and tokens[at] is token), near
    )


def number_with_unit(tokens: Sequence[Token], at: int, number: str, suffix: str) -> str:
    """The substitute for `10s`, whose number is the token at `at`: inside a window of GROUP BY, and
    elsewhere."""
    unit = GROUP_UNITS.get(suffix)
    if unit is None:
        return "put a space between them"
    if (
        at >= 2
        and tokens[at - 1].token_type is TokenType.L_PAREN
        and _word(tokens, at - 2).endswith("window")
    ):
        return f"write {tokens[at - 2].text.upper()}({unit}, {number}): the unit stands first"
    return f"write {number} {PERIOD_UNITS[unit]}"


def _word(tokens: Sequence[Token], at: int) -> str:
    return tokens[at].text.lower() if 0 <= at < len(tokens) and tokens[at].token_type in NAME_TOKENS else ""


def _kind(tokens: Sequence[Token], at: int) -> TokenType | None:
    return tokens[at].token_type if 0 <= at < len(tokens) else None


def _doubled_sign(tokens: Sequence[Token], at: int) -> str | None:
    """`a && b`: the parser reads the first sign as the bitwise operator."""
    sign = tokens[at].text if at < len(tokens) else ""
    if sign in _DOUBLED and sign in (tokens[at - 1].text, _kind(tokens, at + 1) and tokens[at + 1].text):
        return f"write {_DOUBLED[sign]} instead of {sign * 2}"
    return None


def _equality(tokens: Sequence[Token], at: int) -> str | None:
    is_doubled = at and at < len(tokens) and tokens[at].text == "=" and tokens[at - 1].text == "="
    return "write = for equality" if is_doubled else None


def _top(tokens: Sequence[Token], at: int) -> str | None:
    """`SELECT TOP 3 …`."""
    if _kind(tokens, at) is TokenType.NUMBER and _word(tokens, at - 1) == "top":
        return f"write LIMIT {tokens[at].text} at the end, behind ORDER BY"
    return None


def _interval(tokens: Sequence[Token], at: int) -> str | None:
    """`TUMBLE(ts, INTERVAL '5' MINUTE)`, and an INTERVAL anywhere else."""
    if _word(tokens, at - 1) != "interval" or at >= len(tokens):
        return None
    length, unit = tokens[at].text, GROUP_UNITS.get(_word(tokens, at + 1).lower())
    if unit is None:
        return None
    for before in range(at - 3, max(-1, at - 9), -1):
        if (window := WINDOWS_ELSEWHERE.get(_word(tokens, before))) is not None:
            return "write " + window.format(unit=unit, length=length, column=tokens[before + 2].text)
    return (
        f"periods have no INTERVAL: write {length} {PERIOD_UNITS[unit]} in a window, "
        "milliseconds in an expression"
    )


def _missing_comma(tokens: Sequence[Token], at: int) -> str | None:
    """`SELECT m avg(c)` and `SELECT m x avg(c)`: a name behind a name is an alias, and
    nothing may follow it. `GROUP BY m TUMBLINGWINDOW(ss, 10)`: a call behind a key."""
    words = _words(tokens, at)
    if "group" in words and _kind(tokens, at) in NAME_TOKENS and _kind(tokens, at + 1) is TokenType.L_PAREN:
        return f"a comma is missing before '{tokens[at].text}'"
    if at < 2 or words[0] != "select" or "from" in words:
        return None
    if _is_from(words[at - 1]) or _is_from(_word(tokens, at)):
        return None
    call = at - 1 if _kind(tokens, at) is TokenType.L_PAREN else at
    follows = _kind(tokens, call - 1)
    is_behind_value = follows in NAME_TOKENS or follows in (
        TokenType.R_PAREN,
        TokenType.NUMBER,
        TokenType.STRING,
    )
    if call > 1 and is_behind_value and _kind(tokens, call) in NAME_TOKENS:
        return f"a comma is missing before '{tokens[call].text}'"
    return None


def _is_from(word: str) -> bool:
    return did_you_mean(word, ["from"]) is not None


def _selector(tokens: Sequence[Token], at: int) -> str | None:
    """`output every 5 sec last`."""
    word = tokens[at].text.lower() if at < len(tokens) else ""
    is_late = word in ("all", "first", "last", "snapshot") and "output" in _words(tokens, at)
    return f"it stands behind OUTPUT: output {word} every …" if is_late else None


def _filter(tokens: Sequence[Token], at: int) -> str | None:
    """`GROUP BY FILTER(WHERE c) COUNTWINDOW(3)`, and `FROM m FILTER(WHERE c)`."""
    for end in (at + 1, at + 2):
        if _words(tokens, end)[-3:] == ["filter", "(", "where"]:
            break
    else:
        return None
    return "FILTER stands behind the window: COUNTWINDOW(3) FILTER(WHERE …)"


def _words(tokens: Sequence[Token], until: int) -> list[str]:
    return [token.text.lower() for token in tokens[:until]]


def _word_before(tokens: Sequence[Token], at: int) -> str | None:
    """The word that is missing before: `matched delete`, `within 5 unique k`, `m TUMBLINGWINDOW(…)`."""
    word, before = _word(tokens, at), _word(tokens, at - 1)
    if before == "matched" and word in ("insert", "update", "delete"):
        return f"write THEN {word.upper()}"
    if word == "unique" and "within" in _words(tokens, at):
        return "write WITH UNIQUE"
    if before in GROUP_WINDOWS and _kind(tokens, at) is TokenType.L_PAREN:
        return f"write GROUP BY before {tokens[at - 1].text}"
    return None


def _too_early(tokens: Sequence[Token], at: int) -> str | None:
    """A clause before the one that it stands behind."""
    words, word = _words(tokens, at), _word(tokens, at)
    if "unique" in words and word in ("within", "every", "retain"):
        return "WITH UNIQUE stands behind WITHIN, EVERY and RETAIN"
    if word == "every" and "terminated" in words:
        return "WHEN TERMINATED stands last: output last every 5 sec and when terminated"
    is_end = _kind(tokens, at) is TokenType.WHEN and _words(tokens, at + 2)[-1:] == ["terminated"]
    return "write AND WHEN TERMINATED" if is_end and "output" in words else None


def _retain(tokens: Sequence[Token], at: int) -> str | None:
    """`retain union`."""
    word = _word(tokens, at + 1)
    is_how = _word(tokens, at) == "retain" and word in ("union", "intersection")
    return f"write retain-{word}" if is_how else None


def _new(tokens: Sequence[Token], at: int) -> str | None:
    """`new int[3]`, `int[primitive]`: values and types of Java."""
    if _word(tokens, at - 3) == "new" and _kind(tokens, at - 1) is TokenType.L_BRACKET:
        return "an array is written with its values: {0, 0, 0}"
    if _kind(tokens, at) is TokenType.L_BRACKET and _word(tokens, at + 1) == "primitive":
        return f"write {tokens[at - 1].text}[]"
    return None


def _missing_by(tokens: Sequence[Token], at: int) -> str | None:
    """`group c` and `order c`."""
    word = _word(tokens, at)
    if word in ("group", "order") and _word(tokens, at + 1) != "by":
        return f"write {word.upper()} BY"
    return None


def _date_format(tokens: Sequence[Token], at: int) -> str | None:
    """`cast(x, date, dateformat: 'yyyyMMdd')` of EPL."""
    if _word(tokens, at - 1) != "dateformat":
        return None
    return "cast(x, datetime) reads ISO 8601; the timestampFormat of a stream reads other forms"


def _listener(tokens: Sequence[Token], at: int) -> str | None:
    """`on all Tick() as t { … }` of Apama."""
    if _words(tokens, 2) != ["on", "all"]:
        return None
    return "write SELECT … FROM the stream, and what is done with a row under actions"


_HABITS: tuple[Callable[[Sequence[Token], int], str | None], ...] = (
    context_habit,
    pattern_habit,
    _doubled_sign,
    _equality,
    _top,
    _interval,
    _filter,
    _missing_comma,
    _selector,
    _word_before,
    _too_early,
    _retain,
    _missing_by,
    _new,
    _date_format,
    _listener,
)
