"""The interface of pages that other modules add to the HTTP server: requests and answers."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Protocol

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


class Pages(Protocol):
    """A group of pages. `listed`: those of them that the answer to an unknown path names."""

    listed: tuple[str, ...]

    def knows(self, path: str) -> bool:
        """True if the path is one of these pages."""

    def needs_token(self, path: str) -> bool:
        """True if the page shows data, which needs the token."""

    def open(self, path: str, query: Mapping[str, str]) -> Page:
        """The page. Raises TimeoutError when the gateway's loop does not answer."""

    def act(self, path: str) -> Page | None:
        """Carry out a POST to the path; None if the path takes none."""
