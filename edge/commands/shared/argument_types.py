"""Values of arguments: numbers and lengths of time, refused with a sentence where they make no sense; and the
format of what is printed."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from math import isfinite

COUNT_MAX = 1_000_000_000


def count(text: str) -> int:
    """A whole number of at least 1."""
    if not text.isdecimal() or not 1 <= int(text) <= COUNT_MAX:
        raise ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def seconds(text: str) -> float:
    """A number of seconds; 0 where nothing is to be waited for."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not isfinite(value) or value < 0:
        raise ArgumentTypeError(f"{text!r} is not a number of seconds")
    return value


def duration(text: str) -> int:
    """A length of time such as 90s, 10m, 1h, in milliseconds."""
    from rules.durations import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def add_format(parser: ArgumentParser, json: str) -> None:
    """Add the argument that chooses between text and JSON; `json` says what that is."""
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help=f"text, the default, or json: {json}"
    )
