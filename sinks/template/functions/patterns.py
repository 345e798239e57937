"""Regular expressions, in RE2 syntax as everywhere."""

from __future__ import annotations

import re
from itertools import islice

from sinks.template.functions.registry import Function, must_forms
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


_PLAIN: dict[str, Function] = {
    "regexMatch": Function(
        of_texts(lambda pattern, text: compile_regex(pattern).first(text) is not None), 2, 2
    ),
    "regexFind": Function(of_texts(lambda pattern, text: compile_regex(pattern).first(text) or ""), 2, 2),
    "regexFindAll": Function(_find_all, 3, 3),
    "regexReplaceAll": Function(
        of_texts(lambda pattern, text, by: compile_regex(pattern).replace(text, by)), 3, 3
    ),
    "regexReplaceAllLiteral": Function(of_texts(_replace_literally), 3, 3),
    "regexSplit": Function(_split, 3, 3),
}

FUNCTIONS: dict[str, Function] = {
    **_PLAIN,
    **must_forms(_PLAIN, _PLAIN),
    "regexQuoteMeta": Function(of_texts(lambda text: re.sub(r"[\\.+*?()|\[\]{}^$]", r"\\\g<0>", text)), 1, 1),
}
