"""The names in the text of a sampled rule, and the class of its instances."""

from __future__ import annotations

from collections.abc import Mapping

from sql.codegen.source import SourceWriter

LOCALS = frozenset((
    "Group", "Instance", "Shown", "at", "bad", "begins", "chosen", "core", "cores", "count", "due", "e",
    "edge", "end", "entries", "entry", "error", "event", "events", "every", "family", "fire", "fold", "g",
    "get_part", "given", "group", "groups", "instants", "is_tight", "key", "leave", "made", "members", "now",
    "number", "numbers", "out", "p", "part", "passing", "pending", "put", "query", "r", "results", "row",
    "rows", "rule", "sample", "show", "shown", "times", "trigger", "w_end", "w_start", "w_trigger", "x", "y",
))  # fmt: skip
"""The names of the functions' locals: a constant or a helper of the rule gets another name."""


def instance_class(source: SourceWriter, name: str, slots: Mapping[str, str]) -> None:
    """Write the class of instances: the slots of window and content with their first values."""
    with source.block(f"class {name}:"):
        source.line(f"__slots__ = {('key', 'order', 'queued', *slots)!r}")
        with source.block("def __init__(p, key):"):
            source.line("p.key = key")
            source.line("p.order = p.queued = None")
            for slot, first in slots.items():
                source.line(f"p.{slot} = {first}")
    source.line("")


def write_locals(source: SourceWriter, locals_: Mapping[str, str]) -> None:
    """Write the locals of a loop over one instance, `p`."""
    for name, text in locals_.items():
        source.line(f"{name} = {text}")
