"""State by declaration: a part names the attributes that a snapshot holds, and the form of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from sql.types import Saved


class Form(NamedTuple):
    """The conversion of an attribute to plain data and back."""

    pack: Callable[[Any], Saved]
    unpack: Callable[[Saved], Any]


PLAIN = Form(lambda value: value, lambda state: state)
"""The form of what is plain data itself."""


Layout = tuple[tuple[str, Form], ...]
"""Attributes, each with its form."""


class Stored:
    """A part whose state is its attributes. Its snapshot has them in their order; of only one that alone."""

    stored: ClassVar[Layout] = ()

    def snapshot(self) -> Saved:
        parts = [form.pack(getattr(self, name)) for name, form in self.stored]
        return parts[0] if len(parts) == 1 else tuple(parts) or None

    def restore(self, state: Saved) -> None:
        parts = (state,) if len(self.stored) == 1 else state or ()
        for (name, form), part in zip(self.stored, parts, strict=True):
            setattr(self, name, form.unpack(part))
