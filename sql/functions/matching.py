"""The regular expression functions. Patterns are compiled once; see `notations.regex` for their
syntax and their bounds."""

from __future__ import annotations

from sql.functions.notations.regex import compile_regex
from sql.functions.registry import Parameter, function
from sql.types import Type

TEXT = Parameter("text", Type.STRING, as_text=True)
PATTERN = Parameter("pattern", Type.STRING, check=compile_regex)


@function(
    "regexp_matches",
    category="string",
    returns=Type.BOOLEAN,
    nulls="pass",
    parameters=(TEXT, PATTERN),
    examples=(("regexp_matches('pump-17', '[0-9]+$')", True), ("regexp_matches('pump', '^[0-9]')", False)),
)
def regexp_matches(text: str | None, pattern: str | None) -> bool:
    """True if the pattern matches somewhere in the text; false if either is NULL."""
    return text is not None and pattern is not None and compile_regex(pattern).first(text) is not None


@function(
    "regexp_fullmatch",
    category="string",
    returns=Type.BOOLEAN,
    parameters=(TEXT, PATTERN),
    examples=(("regexp_fullmatch('AB', '[AB]+')", True), ("regexp_fullmatch('AB', '[AB]')", False)),
)
def regexp_fullmatch(text: str, pattern: str) -> bool:
    """True if the pattern matches the whole text; it is `text REGEXP pattern` of EPL."""
    return compile_regex(pattern).is_whole(text)


@function(
    "regexp_replace",
    category="string",
    returns=Type.STRING,
    parameters=(TEXT, PATTERN, Parameter("by", Type.STRING)),
    examples=(
        ("regexp_replace('a1b22', '[0-9]+', '#')", "a#b#"),
        ("regexp_replace('key=value', '(\\\\w+)=(\\\\w+)', '$2=$1')", "value=key"),
    ),
)
def regexp_replace(text: str, pattern: str, by: str) -> str:
    """The text with every match replaced; in the replacement `$1` or `${name}` is a
    group, `$$` a dollar sign."""
    return compile_regex(pattern).replace(text, by)


@function(
    "regexp_substr",
    category="string",
    returns=Type.STRING,
    parameters=(TEXT, PATTERN),
    aliases=("regexp_substring",),
    examples=(("regexp_substr('pump-17 on', '[0-9]+')", "17"), ("regexp_substr('pump', '[0-9]+')", "")),
)
def regexp_substr(text: str, pattern: str) -> str:
    """The first match in the text; the empty text if there is none."""
    return compile_regex(pattern).first(text) or ""
