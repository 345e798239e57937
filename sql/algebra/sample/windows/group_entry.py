"""The catalog of windows in GROUP BY. A window adds its entry with `register_group_window`,
beside its class."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from sql.algebra.sample.windows.window import Setting, Window
from sql.algebra.windows.facts import WindowFacts
from sql.plan.clauses import GroupWindowPlan
from sql.syntax.window_words import GROUP_WINDOWS

Field = Literal["length_ms", "hop_ms", "delay_ms", "timeout_ms", "size", "interval", "begin", "emit"]

LENGTHS = frozenset({"length_ms", "hop_ms", "delay_ms", "timeout_ms"})
COUNTS = frozenset({"size", "interval"})

Leaving = Literal["at once", "by panes", "one by one"]


class GroupParameter(NamedTuple):
    """One parameter. The field of the plan gives its kind: length of time, number of events, condition."""

    name: str
    field: Field
    symbol: str
    """Its symbol in the composition and in the bound of the state."""
    optional: bool = False
    least: int = 1
    """The smallest number that is allowed."""
    default: str = ""
    """The meaning of an omitted condition, in words."""


class Finding(NamedTuple):
    """A problem of the parameters of a window, or of one of them."""

    code: str
    text: str
    parameter: str
    hint: str | None = None
    is_warning: bool = False


class GroupWindowEntry(WindowFacts, kw_only=True):
    """One window of GROUP BY: how it is written, how its events leave, and what makes it."""

    name: str
    parameters: tuple[GroupParameter, ...]
    make: Callable[[Setting], Window]
    leaving: Callable[[GroupWindowPlan], Leaving] = lambda plan: "at once"
    """The way events leave: all at once when they have been shown, by panes where aggregates merge, or each
    on its own."""
    bounds: Callable[[GroupWindowPlan], str] = lambda plan: "[)"
    """The brackets of its interval, `[)` for one without its end."""
    complete: Callable[[GroupWindowPlan], GroupWindowPlan] = lambda plan: plan
    """Gives omitted parameters their values."""
    check: Callable[[GroupWindowPlan], Iterator[Finding]] = lambda plan: iter(())
    is_triggered: bool = False
    """True if OVER(WHEN …) chooses the events with which it is shown."""
    counts_dropped: bool = True
    """True if an event that WHERE drops counts for the instant at which the window is shown."""

    @property
    def label(self) -> str:
        """The word that writes it."""
        return f"{self.name.upper()}WINDOW"

    @property
    def has_unit(self) -> bool:
        """True if a unit of time stands first."""
        return any(parameter.field in LENGTHS for parameter in self.parameters)

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters between its parentheses."""
        return (*(("unit",) if self.has_unit else ()), *(parameter.name for parameter in self.parameters))

    @property
    def least(self) -> int:
        """The least number of arguments."""
        return len(self.names) - sum(parameter.optional for parameter in self.parameters)

    @property
    def signature(self) -> str:
        """The syntax; `[, x]` may be left out."""
        needed, further = self.names[: self.least], self.names[self.least :]
        return f"{self.label}({', '.join(needed)}{''.join(f'[, {name}]' for name in further)})"


GROUP_ENTRIES: dict[str, GroupWindowEntry] = {}
"""Every window of GROUP BY by its name."""


def register_group_window(entry: GroupWindowEntry) -> None:
    """Add a window to the catalog, and its word to the language."""
    GROUP_ENTRIES[entry.name] = entry
    GROUP_WINDOWS[entry.label.lower()] = entry.name


def leaves_at_once(plan: GroupWindowPlan) -> bool:
    """True if all events of a window leave together as soon as they have been shown."""
    return GROUP_ENTRIES[plan.kind].leaving(plan) == "at once"
