"""Markdown and values as words, shared by all pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

FENCE = "```"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; bars in cells are escaped."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in lines
    )


def code(text: str) -> str:
    """Inline code; nothing for nothing."""
    return f"`{text}`" if text else ""


def shown(value: object) -> str:
    """A value as it is written in YAML and JSON."""
    import json

    if isinstance(value, Path):
        return str(value)
    try:
        return json.dumps(value, ensure_ascii=False)
    except TypeError:
        return str(value)


def result(value: object) -> str:
    """A result of an example as SQL writes it."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, bytes):
        return f"bytes {value.hex()}"
    return repr(value) if isinstance(value, str | float) else shown(value)
