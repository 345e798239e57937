"""Regular expressions, in RE2 syntax as everywhere. A name that begins with `must` means the same: an error
is a dead letter with either."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice
from typing import Any

from sinks.template.functions.registry import Function
from sinks.template.functions.texts import of_texts, whole_number
from sinks.template.values import print_value
from sql.functions.notations.regex import compile_regex


def _find_all(pattern: object, text: object, most: object) -> list[str]:
    """The first `most` matches; all of them where it is negative."""
    count = whole_number(most, "regexFindAll")
    found = compile_regex(print_value(pattern)).matches(print_value(text))
    return [str(match.group(0)) for match in islice(found, count if count >= 0 else None)]


def _split(pattern: object, text: object, most: object) -> list[str]:
    """The pieces between matches: at most so many, the last with the rest; all where `most` is negative.

    A match at the very beginning that is empty makes no piece, and none comes behind an empty match at the
    end.
    """
    count, whole = whole_number(most, "regexSplit"), print_value(text)
    if count == 0:
        return []
    if not whole:
        return [""]
    pieces: list[str] = []
    at = end = 0
    for match in compile_regex(print_value(pattern)).matches(whole):
        if 0 < count == len(pieces) + 1:
            break
        end = match.start()
        if match.end():
            pieces.append(whole[at:end])
        at = match.end()
    return [*pieces, whole[at:]] if end != len(whole) else pieces


def _replace_literally(pattern: str, text: str, by: str) -> str:
    return compile_regex(pattern).replace(text, by.replace("$", "$$"))


_ALL: dict[str, tuple[Callable[..., Any], int]] = {
    "regexMatch": (of_texts(lambda pattern, text: compile_regex(pattern).first(text) is not None), 2),
    "regexFind": (of_texts(lambda pattern, text: compile_regex(pattern).first(text) or ""), 2),
    "regexFindAll": (_find_all, 3),
    "regexReplaceAll": (of_texts(lambda pattern, text, by: compile_regex(pattern).replace(text, by)), 3),
    "regexReplaceAllLiteral": (of_texts(_replace_literally), 3),
    "regexSplit": (_split, 3),
}

FUNCTIONS: dict[str, Function] = {
    **{name: Function(apply, count, count) for name, (apply, count) in _ALL.items()},
    **{f"mustR{name[1:]}": Function(apply, count, count) for name, (apply, count) in _ALL.items()},
    "regexQuoteMeta": Function(of_texts(lambda text: re.sub(r"[\\.+*?()|\[\]{}^$]", r"\\\g<0>", text)), 1, 1),
}
