"""Completion at the prompt of `penstock sql`: the tab key completes words of the language, and names."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sql.language.cursor import CLAUSE_WORDS
from sql.language.tokens import KEYWORDS

COMMANDS = (
    ".help",
    ".quit",
    ".tables",
    "show",
    "describe",
    "explain",
    "create",
    "drop",
    "stream",
    "streams",
    "table",
    "tables",
)
WORDS = frozenset({*COMMANDS, *CLAUSE_WORDS, *map(str.lower, KEYWORDS), "by", "on", "asc", "desc"})

DELIMITERS = " \t\n,;()[]<>=!+-*/%|&'\"`"
"""What ends a word. A point does not: a column stands behind an alias."""


def enable(names: Callable[[], Iterable[str]]) -> None:
    """Let the tab key complete; `names` returns the streams, tables and columns there are now."""
    import readline

    found: list[str] = []

    def complete(text: str, state: int) -> str | None:
        if state == 0:
            found[:] = candidates(text, names())
        return found[state] if state < len(found) else None

    readline.set_completer_delims(DELIMITERS)
    readline.set_completer(complete)
    readline.parse_and_bind("tab: complete")


def candidates(text: str, names: Iterable[str]) -> list[str]:
    """The words and names that begin with a text; words of the language in its case.

    >>> candidates("SEL", ["selected"]), candidates("sel", ["selected"]), candidates("r.te", ["temp"])
    (['SELECT'], ['select', 'selected'], ['r.temp'])
    """
    alias, point, begun = text.rpartition(".")
    if alias:
        return sorted(f"{alias}{point}{name}" for name in names if name.startswith(begun))
    words = (word.upper() for word in WORDS) if text.isupper() else WORDS
    return sorted({word for word in (*words, *names) if word.startswith(text)})
