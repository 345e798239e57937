"""Values of arguments: numbers and lengths of time, refused with a sentence where they make no sense; and the
format of what is printed."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError

COUNT_MAX = 1_000_000_000
DAY_MS = 86_400_000


def count(text: str) -> int:
    """A whole number of at least 1."""
    if not text.isdecimal() or not 1 <= int(text) <= COUNT_MAX:
        raise ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def duration(text: str) -> int:
    """A length of time such as 90s, 10m, 1h, in milliseconds; a number without a unit is refused."""
    from rules.durations import parse_duration

    try:
        return parse_duration(text, None)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def days(text: str) -> int:
    """A length of time in whole days, such as 90d."""
    length_ms = duration(text)
    if not length_ms or length_ms % DAY_MS:
        raise ArgumentTypeError(f"must be a number of days such as 90d, not '{text}'")
    return length_ms // DAY_MS


def add_format(parser: ArgumentParser, json: str) -> None:
    """Add the argument that chooses between text and JSON; `json` says what that is."""
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help=f"text, the default, or json: {json}"
    )
