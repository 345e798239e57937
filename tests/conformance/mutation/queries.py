"""Changes of the text of a query."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from tests.conformance.mutation import fragments as pieces
from tests.conformance.mutation.fragments import Fragments, clauses_of, word_of

Change = Callable[[str, Fragments, random.Random], str]

ORDER = ("where", "group by", "having", "output", "order by", "limit")
"""In this order clauses follow each other at the end of a select."""


def changed(text: str, known: Fragments, dice: random.Random) -> str:
    """A text with one change."""
    for _ in range(10):
        other = dice.choices(CHANGES, WEIGHTS)[0](text, known, dice)
        if other != text:
            return other
    return text


def _replaced(text: str, pattern: re.Pattern[str], dice: random.Random, new: str) -> str:
    found = list(pattern.finditer(text))
    if not found:
        return text
    match = dice.choice(found)
    return text[: match.start()] + new + text[match.end() :]


def swap_word(text: str, known: Fragments, dice: random.Random) -> str:
    """Another word of the same sort: operator, literal, column, unit."""
    words = pieces.WORDS.findall(text)
    places = [place for place, word in enumerate(words) if _sorts(word)]
    if not places:
        return text
    place = dice.choice(places)
    words[place] = dice.choice(dice.choice(_sorts(words[place])))
    return "".join(words)


def _sorts(word: str) -> list[tuple[str, ...]]:
    return [alike for alike in pieces.ALIKE if word.lower() in map(str.lower, alike)]


def swap_call(text: str, known: Fragments, dice: random.Random) -> str:
    """Another aggregate or function with the same arguments."""
    calls = re.compile(rf"\b(?:{'|'.join((*pieces.AGGREGATES, *pieces.FUNCTIONS))})\b(?=\()", re.IGNORECASE)
    names = pieces.AGGREGATES if dice.random() < AGGREGATES_SHARE else pieces.FUNCTIONS
    return _replaced(text, calls, dice, dice.choice(names))


AGGREGATES_SHARE = 0.8


def swap_window(text: str, known: Fragments, dice: random.Random) -> str:
    """Another window."""
    grouped = pieces.GROUP_WINDOWS.search(text) is not None
    pattern = pieces.GROUP_WINDOWS if grouped else pieces.WINDOWS
    return _replaced(text, pattern, dice, dice.choice(known.group_windows if grouped else known.windows))


def add_window(text: str, known: Fragments, dice: random.Random) -> str:
    """A window more behind a stream."""
    stream = re.compile(r"(?<=\bfrom )(?:E|S|T|W|demo)\b(?:\([^()]*\))?", re.IGNORECASE)
    found = list(stream.finditer(text))
    if not found:
        return text
    end = dice.choice(found).end()
    return text[:end] + dice.choice(known.windows) + text[end:]


def swap_atom(text: str, known: Fragments, dice: random.Random) -> str:
    """Another condition or other arguments between parentheses."""
    return _replaced(text, pieces.ATOMS, dice, dice.choice(known.atoms))


def drop_clause(text: str, known: Fragments, dice: random.Random) -> str:
    """A clause less."""
    clauses = clauses_of(text)
    if len(clauses) > 1:
        del clauses[dice.randrange(1, len(clauses))]
    return "".join(clauses)


def swap_clause(text: str, known: Fragments, dice: random.Random) -> str:
    """Another clause of the same word."""
    clauses = clauses_of(text)
    place = dice.randrange(len(clauses))
    others = known.clauses.get(word_of(clauses[place]), [clauses[place]])
    clauses[place] = dice.choice(others) + (" " if place + 1 < len(clauses) else "")
    return "".join(clauses)


def add_clause(text: str, known: Fragments, dice: random.Random) -> str:
    """A clause more, at its place."""
    clauses = [clause.rstrip(" ;") for clause in clauses_of(text)]
    word = dice.choice(ORDER)
    rank = ORDER.index(word)
    place = next((p for p, clause in enumerate(clauses) if word_of(clause) in ORDER[rank:]), len(clauses))
    clauses.insert(place, dice.choice(known.clauses[word]))
    return " ".join(clauses)


def add_output(text: str, known: Fragments, dice: random.Random) -> str:
    """An output limit at the end of a select."""
    head, end, rest = text.partition(";")
    if "output" in head.lower() or "select" not in head.lower():
        return text
    return f"{head.rstrip()} {dice.choice(known.clauses['output'])}{end}{rest}"


def duplicate_part(text: str, known: Fragments, dice: random.Random) -> str:
    """What stands between two commas or parentheses once more."""
    parts = re.split(r"(?<=[,(])|(?=[,)])", text)
    place = dice.randrange(len(parts))
    return "".join([*parts[: place + 1], ",", *parts[place:]])


def negate(text: str, known: Fragments, dice: random.Random) -> str:
    """`not` before a part in parentheses, DISTINCT inside it, or a pair of parentheses around a word."""
    found = list(pieces.ATOMS.finditer(text))
    if not found:
        return text
    match = dice.choice(found)
    before, inside, after = text[: match.start()], match.group(), text[match.end() :]
    if dice.random() < 0.5:
        return f"{before}(distinct {inside[1:]}{after}"
    return f"{before}(not {inside}){after}"


CHANGES: tuple[Change, ...] = (
    swap_word, swap_call, swap_window, add_window, swap_atom, drop_clause, swap_clause, add_clause,
    add_output, duplicate_part, negate,
)  # fmt: skip
WEIGHTS = (8, 4, 4, 1, 2, 1, 4, 4, 2, 1, 1)
