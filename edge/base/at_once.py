"""Questions to servers, asked at once: together they take as long as the slowest answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Answer = TypeVar("Answer")

AT_ONCE_MAX = 32
"""Questions at the same time; further ones wait for an answer to one of these."""


def at_once(questions: Sequence[Callable[[], Answer]]) -> list[Answer]:
    """The answers, in the order of the questions.

    >>> at_once([lambda: 1, lambda: 2])
    [1, 2]
    """
    with ThreadPoolExecutor(AT_ONCE_MAX) as threads:
        return [future.result() for future in [threads.submit(question) for question in questions]]
