"""Columns that are parts of the topic: `columns: {machine: topic(2)}` takes the second part of
`plant/press7/temp`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sql.catalog.streams import Stream

OPTION = "TOPIC_PARTS"
"""The equivalent stream option: `TOPIC_PARTS="hall=2,machine=3"`."""

_DECLARED = re.compile(r"topic\(\s*([1-9]\d{0,3})\s*\)", re.IGNORECASE)
_PART = re.compile(r"\s*([^=,]+?)\s*=\s*([1-9]\d{0,3})\s*")


def part_declared(type_name: str) -> int | None:
    """The number of the part in `topic(2)`, from 1; None for any other type.

    >>> part_declared("topic(2)"), part_declared("string")
    (2, None)
    """
    found = _DECLARED.fullmatch(type_name.strip())
    return int(found[1]) if found else None


def topic_parts(stream: Stream) -> dict[str, int]:
    """The columns that are parts of the topic, with their numbers. Raises ValueError for an invalid one."""
    text = str(stream.options.get(OPTION, ""))
    found: dict[str, int] = {}
    for part in text.split(",") if text else ():
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(f"{OPTION} is a list such as hall=2,machine=3, not '{text}'")
        found[match[1]] = int(match[2])
    return found


def topic_values(parts: Mapping[str, int], topic: str) -> dict[str, str | None]:
    """The values of the columns for one topic; NULL if the topic has fewer parts.

    >>> topic_values({"machine": 2, "far": 9}, "plant/press7/temp")
    {'machine': 'press7', 'far': None}
    """
    levels = topic.split("/")
    return {column: levels[part - 1] if part <= len(levels) else None for column, part in parts.items()}
