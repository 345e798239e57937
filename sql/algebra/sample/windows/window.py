"""The contract of sampled windows: when the content is shown, and what leaves.

A window is one object for a rule. What it remembers is in the slots of an instance, `p`, of which there is
one, or one for each key of OVER(PARTITION BY). It writes the statements around an event's coming in, and does
what is due.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Protocol
from zoneinfo import ZoneInfo

from sql.algebra.sample.content import Content
from sql.algebra.sample.instance import Instance
from sql.codegen.hits import Hits
from sql.codegen.loop import LoopWriter
from sql.plan.clauses import GroupWindowPlan


class WindowCore(Protocol):
    """The loop around a window, as the window calls it."""

    def show(self, p: Instance, start_ms: int, end_ms: int, trigger_ms: int) -> None:
        """Show what is in an instance."""

    def close(self, p: Instance, start_ms: int, end_ms: int) -> None:
        """Show what is in an instance, and empty it; that of a key goes if the window waits for nothing."""

    def skip_empty(self, windows: int) -> None:
        """So many empty windows are not shown."""


class Setting(NamedTuple):
    """The arguments of a window's constructor."""

    plan: GroupWindowPlan
    content: Content
    zone: ZoneInfo
    empty_max: int | None
    """So many empty windows are shown in one step; None: none are shown."""
    met: Hits | None
    """The hits of OVER(WHEN …), if an expression reads them."""
    is_timed: bool
    """Events come with an instant each."""


class Window(ABC):
    """When the content of an instance is shown, and what leaves it."""

    slots: ClassVar[dict[str, str]]
    """The attributes of an instance for it: names, and first values as Python text."""
    marks: tuple[str, ...] = ()
    """The slots that a snapshot holds: plain numbers, or None."""

    locals: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """The locals of a loop over one instance: names, and what they stand for."""

    functions: Mapping[str, Any] = MappingProxyType({})
    """Those of the text."""

    def __init__(self, setting: Setting) -> None:
        self.plan = setting.plan
        self.content = setting.content
        self.is_timed = setting.is_timed

    # --- code -----------------------------------------------------------------------------------------------

    def write_helpers(self, loop: LoopWriter) -> None:
        """Functions beside the loop."""

    def write_first(self, loop: LoopWriter) -> None:
        """Before the first of several events of the only instance."""

    def write_end(self, loop: LoopWriter) -> None:
        """After the last of several events of an instance."""

    def write_instant(self, loop: LoopWriter) -> None:
        """Before an event, where the instant may be another than that of the event before."""

    def write_before(self, loop: LoopWriter) -> None:
        """Before the event at hand comes in; `continue` keeps it out."""

    def write_after(self, loop: LoopWriter) -> None:
        """After it has come in."""

    def write_open(self, loop: LoopWriter) -> None:
        """The event is the first of its window: the window's deadline is noted."""
        loop.line("due = min(due, core.open(p, at))" if self.is_timed else "core.open(p, at)")

    # --- what happens ---------------------------------------------------------------------------------------

    def begin(self, p: Instance, now_ms: int) -> None:
        """The rule starts, with its only instance."""

    def opened(self, p: Instance, at_ms: int) -> None:
        """The first event of a window has come."""

    def time_moves(self) -> None:
        """A step begins in which what is due is done."""

    def deadline(self, p: Instance) -> int | None:
        """When something is due next."""
        return None

    def fire(self, core: WindowCore, p: Instance, now_ms: int) -> None:
        """Do what is due at the deadline, which is at or before `now_ms`."""

    @abstractmethod
    def is_blank(self, p: Instance) -> bool:
        """True if the instance holds nothing, and waits for nothing."""

    def is_idle(self, p: Instance) -> bool:
        """True if nothing would be shown at the deadline but that the window is empty."""
        return False

    # --- state ----------------------------------------------------------------------------------------------

    def pack(self, p: Instance) -> dict[str, Any]:
        return {name: getattr(p, name) for name in self.marks}

    def unpack(self, p: Instance, state: dict[str, Any]) -> None:
        for name in self.marks:
            setattr(p, name, state[name])
