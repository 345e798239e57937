"""A Python expression as text, with what the writer of expressions knows of its value."""

from __future__ import annotations

from sql.record import Record

NUMBER, TEXT, BOOLEAN = "number", "text", "boolean"


class Code(Record):
    """A Python expression. `sure`: the kind that its value has if not NULL; `atom`: cheap to repeat."""

    text: str
    nullable: bool = True
    atom: bool = False
    sure: str | None = None
