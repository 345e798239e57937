"""The class of the instances of a sampled rule, and the locals of a loop over one."""

from __future__ import annotations

from collections.abc import Mapping

from sql.codegen.source import SourceWriter


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
