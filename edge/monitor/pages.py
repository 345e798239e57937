"""Pages of the HTTP server that live beside it: what they are asked, and what they give back."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Protocol

from sql.record import Record


class Page(Record):
    """What goes back. A `body` that is a generator is sent piece by piece until it ends or
    the listener is gone."""

    status: int
    body: bytes | Generator[bytes]
    kind: str = "application/json"


class Pages(Protocol):
    """A group of pages."""

    def knows(self, path: str) -> bool:
        """Whether the path is one of these pages."""

    def needs_token(self, path: str) -> bool:
        """Whether what the page shows is nobody else's business."""

    def open(self, path: str, query: Mapping[str, str]) -> Page:
        """The page. Raises TimeoutError when the gateway's loop does not answer."""

    def act(self, path: str) -> Page | None:
        """Do what a POST to the path asks for; None where there is nothing to do."""
