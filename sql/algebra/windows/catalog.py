"""The catalog of windows in FROM: each is a composition of the few operators.
A new window is one entry in a file of this folder.

An entry holds the syntax of the window (its parameters), its composition (`make`), and its cost. The
documentation's window table, `explain` and the binder's error messages derive from it.

Parameter kinds: size (a positive whole number), period (a length of time), delay (the same, perhaps 0),
timestamp (an event's own time in ms), value (a number per event), keys and criteria (one or more expressions
per event), predicate (an expression over built-in properties), include (a boolean), reference (an instant in
ms), flags (FORCE_UPDATE, START_EAGER), extras (further columns).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, get_args
from zoneinfo import ZoneInfo

from sql.aggregates.base import Aggregate
from sql.algebra.event import Event
from sql.algebra.windows.facts import WindowFacts
from sql.record import Record

ParameterKind = Literal[
    "size", "period", "delay", "timestamp", "value", "keys", "criteria", "predicate", "include", "reference",
    "flags", "extras",
]  # fmt: skip

_KINDS: dict[str, ParameterKind] = {kind: kind for kind in get_args(ParameterKind)}


class Computed(NamedTuple):
    """Values computed from each event: as bound expressions, for the text of a loop, and as a function."""

    nodes: Any
    of: Callable[[Event], Any]
    read: Callable[[Event], Any]
    """The same without a check of the value, for events that have passed it."""
    lasts: bool = True
    """False where it reads the clock or a variable, and so may be another value later."""


class WindowParameter(NamedTuple):
    """One parameter of a window."""

    name: str
    kind: ParameterKind
    optional: bool = False


class Start(Record):
    """The data that a window gets when its instance starts."""

    now_ms: int
    zone: ZoneInfo


class WindowSpec(WindowFacts, kw_only=True):
    """One window. `make` takes the start and the evaluated arguments by name, and gives a policy, a trigger
    or a statistic."""

    name: str
    namespace: str = "win"
    role: Literal["retain", "batch", "derived", "group", "merge"] = "retain"
    parameters: tuple[WindowParameter, ...] = ()
    make: Callable[..., Any] | None = None
    columns: tuple[str, ...] = ()
    """Those of the rows that a derived-value window posts."""
    aggregates: Mapping[str, Aggregate] = {}
    """The same as aggregates of the window's value: a statement that needs no more is folded in its loop."""

    @property
    def signature(self) -> str:
        """The window's name and parameters, as written in a query."""
        inside = ", ".join(f"[{p.name}]" if p.optional else p.name for p in self.parameters)
        return f"{self.name}({inside})" if inside else self.name


WINDOWS: dict[str, WindowSpec] = {}
"""Every window of FROM by its name, in lower case."""


def parameters(words: str) -> tuple[WindowParameter, ...]:
    """Parameters written as `name:kind` words, with `?` after the kind of an optional one."""
    parts = (word.split(":") for word in words.split())
    return tuple(WindowParameter(name, _KINDS[kind.rstrip("?")], kind.endswith("?")) for name, kind in parts)


def register_window(*specs: WindowSpec) -> None:
    WINDOWS.update((spec.name, spec) for spec in specs)
