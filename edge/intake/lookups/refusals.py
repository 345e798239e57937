"""The refusals of one store, which bound the rate of further requests to it."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from edge.intake.lookups.base import KeyRefused, Refused
from sql.plan.lookup_plan import Request

KEPT_MAX = 1_000
"""The most refusals kept; a further one replaces the oldest."""

Mark = Request | tuple[tuple[str, ...], tuple[type, ...]]
"""The scope of a refusal: one key, or all keys with these columns and types."""


@dataclass(slots=True)
class Standing:
    """A refusal. `until_ms`: when a request is sent again, on the monotonic clock."""

    reason: str
    until_ms: int


class StoreRefusals:
    """Used by all threads of a worker."""

    def __init__(self, again_ms: int) -> None:
        self._again_ms = again_ms
        self._kept: dict[Mark, Standing] = {}
        self._lock = threading.Lock()

    def reason(self, request: Request, now_ms: int) -> str | None:
        """Why the store refuses a request; None if the request is to be sent. When the time of a refusal is
        over, one request is sent, and the others stay refused until it is answered."""
        with self._lock:
            standing = self._kept.get(_shape(request)) or self._kept.get(request)
            if standing is None:
                return None
            if now_ms < standing.until_ms:
                return standing.reason
            standing.until_ms = now_ms + self._again_ms
            return None

    def add(self, request: Request, refusal: Refused, now_ms: int) -> bool:
        """The store has refused a request. True if this is news."""
        mark = request if isinstance(refusal, KeyRefused) else _shape(request)
        with self._lock:
            known = self._kept.pop(mark, None)
            if len(self._kept) >= KEPT_MAX:
                del self._kept[next(iter(self._kept))]
            self._kept[mark] = Standing(str(refusal), now_ms + self._again_ms)
        return known is None or known.reason != str(refusal)

    def clear(self, request: Request) -> None:
        """The store refuses this request no more."""
        with self._lock:
            self._kept.pop(_shape(request), None)
            self._kept.pop(request, None)

    def newest(self) -> str | None:
        """The reason of the newest refusal that stands."""
        with self._lock:
            return next((standing.reason for standing in reversed(self._kept.values())), None)


def _shape(request: Request) -> Any:
    return request.columns, tuple([type(value) for value in request.key])
