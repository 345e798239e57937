"""The settings that environment variables give: `PENSTOCK__SECTION__KEY`, in any case, with or without single
underscores within a word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

PREFIX = "PENSTOCK__"


class Given(NamedTuple):
    """A setting: the variable, its words as the caller spelled them, and the value."""

    variable: str
    words: tuple[str, ...]
    text: str

    @property
    def key(self) -> tuple[str, ...]:
        """The words as `spelled` compares them."""
        return tuple(spelled(word) for word in self.words)


def spelled(word: str) -> str:
    """A word in lower case and without underscores: `ANSWER_TIMEOUT_MS` is the key `answerTimeoutMs`.

    >>> spelled("ANSWER_TIMEOUT_MS")
    'answertimeoutms'
    """
    return word.lower().replace("_", "")


def settings(environment: Mapping[str, str]) -> Iterator[Given]:
    """The settings of an environment, by the names of the variables."""
    for name, text in sorted(environment.items()):
        if name.upper().startswith(PREFIX):
            yield Given(name, tuple(name[len(PREFIX) :].split("__")), text)
