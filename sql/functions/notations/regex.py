"""Regular expressions in RE2 syntax, in bounded time for any pattern of a rule file.

With google-re2 (the `re2` extra) matching is linear in the text. Without it Python's backtracking engine
runs, and each pattern is first measured: the number of ways, at most, to match it against a text of n
characters. Patterns whose number of ways is exponential (`(a+)+`, `(a|a)*`) are refused, and so are texts on
which a pattern could take more than REGEX_STEPS_MAX steps. Constructs that RE2 lacks (look-around,
back-references) are refused by both, so that a rule does not depend on what is installed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from math import log2
from typing import Any

from sql.errors import DataError
from sql.functions.limits import CACHED_PATTERNS, REGEX_STEPS_MAX, TEXT_CHARACTERS_MAX, within
from sql.record import Record

_REMEDY = (
    "install the 're2' extra (google-re2), which matches any pattern in linear time, or simplify the pattern"
)


class Ways(Record):
    """An upper bound for the ways to match a pattern against n characters: n ** degree * 2 ** bits."""

    degree: int = 0
    bits: float = 0.0

    def fits(self, characters: int) -> bool:
        """True if a text of this length stays within REGEX_STEPS_MAX."""
        return self.degree * log2(characters + 2) + self.bits <= log2(REGEX_STEPS_MAX)


class Regex(Record):
    """A compiled pattern; `ways` is None on a linear-time engine."""

    source: str
    compiled: Any
    ways: Ways | None

    def matches(self, text: str) -> Iterator[Any]:
        """The matches from left to right, none overlapping; an empty one right behind another
        match does not count."""
        self._check_length(text)
        end = -1
        for found in self.compiled.finditer(text):
            if found.end() > end:
                end = found.end()
                yield found

    def first(self, text: str) -> str | None:
        """The text of the first match, None without one."""
        self._check_length(text)
        found = self.compiled.search(text)
        return None if found is None else str(found.group(0))

    def is_whole(self, text: str) -> bool:
        """True if the pattern matches all of the text."""
        self._check_length(text)
        return self.compiled.fullmatch(text) is not None

    def replace(self, text: str, by: str) -> str:
        """The text with every match replaced; `$1`, `${1}`, `${name}` stand for groups,
        `$$` for a dollar sign."""
        template = _template(by)
        pieces: list[str] = []
        at = size = 0
        for found in self.matches(text):
            expanded = "".join(
                [piece if literal else self._group(found, piece) for literal, piece in template]
            )
            size += found.start() - at + len(expanded)
            within(size, TEXT_CHARACTERS_MAX, "TEXT_CHARACTERS_MAX")
            pieces += (text[at : found.start()], expanded)
            at = found.end()
        return "".join(pieces) + text[at:]

    def _check_length(self, text: str) -> None:
        if self.ways is not None and not self.ways.fits(len(text)):
            raise DataError(
                f"pattern '{self.source}' may take more than REGEX_STEPS_MAX steps on a text of "
                f"{len(text)} characters; {_REMEDY}"
            )

    def _group(self, found: Any, name: str) -> str:
        try:
            return found.group(int(name) if name.isdigit() else name) or ""
        except (IndexError, KeyError):
            raise DataError(
                f"pattern '{self.source}' has no group '{name}'; write ${{1}}x for group 1 followed by x"
            ) from None


@lru_cache(CACHED_PATTERNS)
def compile_regex(source: str) -> Regex:
    """Compile a pattern, cached; raises `DataError` with the reason if it is invalid."""
    return _with_re2(source) or _with_backtracking(source)


def _with_re2(source: str) -> Regex | None:
    try:
        import re2
    except ImportError:
        return None
    options = re2.Options()
    options.log_errors = False
    try:
        return Regex(source, re2.compile(source, options), None)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        shown = reason.decode(errors="replace") if isinstance(reason, bytes) else reason
        raise DataError(f"'{source}' is not a regular expression: {shown}") from None


def _with_backtracking(source: str) -> Regex:
    from re import _parser  # type: ignore[attr-defined]  # the parse tree is nowhere public

    if "[:" in source:
        raise DataError(
            f"pattern '{source}': classes like [:alpha:] need the 're2' extra; write \\w, \\d, [a-z]"
        )
    try:
        python = _in_python_syntax(source)
        tree = _parser.parse(python, re.ASCII)
        compiled = re.compile(python, re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise DataError(f"'{source}' is not a regular expression: {error}") from None
    ways = _ways(tree, source)
    anchored = len(tree) > 0 and str(tree[0][1]) in ("AT_BEGINNING", "AT_BEGINNING_STRING")
    return Regex(source, compiled, ways if anchored else Ways(ways.degree + 1, ways.bits))


def _in_python_syntax(source: str) -> str:
    """The pattern in Python's syntax: `$` and `\\z` of RE2 match only at the end of the text, like `\\Z`."""
    if re.match(r"\(\?[a-zA-Z]*m", source):
        return source
    inside_class = False
    parts: list[str] = []
    for token in re.findall(r"\\.|.", source, re.DOTALL):
        if not inside_class and token in ("$", r"\z"):
            token = r"\Z"  # noqa: PLW2901
        inside_class = token == "[" or (inside_class and token != "]")
        parts.append(token)
    return "".join(parts)


def _ways(tree: Iterable[tuple[Any, Any]], source: str) -> Ways:
    """The ways of a sequence: the product of those of its items."""
    found = [_item_ways(str(op), argument, source) for op, argument in tree]
    return Ways(sum(ways.degree for ways in found), sum(ways.bits for ways in found))


def _item_ways(op: str, argument: Any, source: str) -> Ways:
    if op in ("LITERAL", "NOT_LITERAL", "ANY", "IN", "AT", "CATEGORY"):
        return Ways()
    if op == "SUBPATTERN":
        return _ways(argument[-1], source)
    if op == "BRANCH":
        return _branch_ways(argument[1], source)
    if op in ("MAX_REPEAT", "MIN_REPEAT"):
        least, most, content = argument
        return _repeat_ways(int(least), int(most), _ways(content, source), source)
    raise DataError(
        f"pattern '{source}': look-around, back-references and possessive repeats are not RE2 syntax"
    )


def _branch_ways(branches: list[Any], source: str) -> Ways:
    """The ways of the worst branch if the first characters distinguish the branches, else their sum."""
    inner = [_ways(branch, source) for branch in branches]
    degree = max(ways.degree for ways in inner)
    starts = {
        chr(branch[0][1]).lower() for branch in branches if len(branch) and str(branch[0][0]) == "LITERAL"
    }
    if len(starts) == len(branches):
        return Ways(degree, max(ways.bits for ways in inner))
    return Ways(degree, log2(sum(2 ** min(ways.bits, 64) for ways in inner)))


def _repeat_ways(least: int, most: int, content: Ways, source: str) -> Ways:
    if most >= 65_535:  # the parser's mark for "no upper bound" is larger on every platform
        if content != Ways():
            raise DataError(f"pattern '{source}' repeats what can itself match in several ways; {_REMEDY}")
        return Ways(degree=1)
    return Ways(content.degree * most, content.bits * most + log2(most - least + 1))


@lru_cache(CACHED_PATTERNS)
def _template(text: str) -> tuple[tuple[bool, str], ...]:
    """A replacement as pieces: (True, literal text) or (False, group).

    >>> _template("a$1${n}")
    ((True, 'a'), (False, '1'), (False, 'n'))
    """
    pieces: list[tuple[bool, str]] = []
    for token in re.finditer(r"\$(?:\$|(\w+)|\{(\w+)\})|[^$]+|\$", text):
        group = token[1] or token[2]
        pieces.append((False, group) if group else (True, "$" if token[0] == "$$" else token[0]))
    return tuple(pieces)
