"""The answer to a request over HTTP."""

from __future__ import annotations

from collections.abc import Generator

from sql.record import Record


class Page(Record):
    """An answer. A `body` that is a generator is sent piece by piece until it ends or the
    client is gone."""

    status: int
    body: bytes | Generator[bytes]
    kind: str = "application/json"


def text_page(status: int, text: str) -> Page:
    """A page of one line."""
    return Page(status, f"{text}\n".encode(), "text/plain; charset=utf-8")
