"""Pages that other modules add to the HTTP server."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from edge.base.page import Page


class Pages(ABC):
    """A group of pages. `listed`: those of them that the answer to an unknown path names."""

    listed: tuple[str, ...] = ()

    @abstractmethod
    def knows(self, path: str) -> bool:
        """True if the path is one of these pages."""

    def needs_token(self, path: str) -> bool:
        """True if the page shows data, which needs the token."""
        return True

    @abstractmethod
    def open(self, path: str, query: Mapping[str, str]) -> Page:
        """The page. Raises TimeoutError when the gateway's loop does not answer."""

    def act(self, path: str) -> Page | None:
        """Carry out a POST to the path; None if the path takes none."""
        return None
