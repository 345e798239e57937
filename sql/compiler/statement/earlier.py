"""Values of earlier events that the text reads where they stand: `prior`, and `prev` over a queue."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from sql.algebra.retain.policies import Policy
from sql.plan.bound import Const, PrevCall, Read
from sql.rows import Shape, column_text


def prior_depth(calls: Sequence[PrevCall]) -> int:
    """The number of events before it that `prior` reads from one; -1 where it reads none."""
    found = (call.index.value for call in calls if call.name == "prior" and isinstance(call.index, Const))
    return max(found, default=-1)


class Earlier:
    """The calls that are read in the text, and the expressions that read them."""

    def __init__(
        self, calls: Sequence[PrevCall], shape: Shape, window: Policy | None, *, in_place: bool
    ) -> None:
        """`shape`: of the rows of the source. `window`: the one in the loop, None without any. `in_place`:
        rows are made where their event stands, as new ones."""
        self.calls = calls
        self.shape = shape
        self.window = window
        self.is_inline = in_place and all(map(self._is_read, calls))
        """True if the values stand where they are read; else the instance finds them."""

    def _is_read(self, call: PrevCall) -> bool:
        """True if a value can be read where it stands: at a fixed place of a queue."""
        if not isinstance(call.value, Read) or call.value.column is None:
            return False
        if not (call.index is None or isinstance(call.index, Const)):
            return False
        if isinstance(call.index, Const) and (call.index.value.__class__ is not int or call.index.value < 0):
            return False
        return call.name == "prior" if self.window is None else self.window.is_queue

    def text_of(self, call: PrevCall) -> str:
        assert isinstance(call.value, Read)
        place = call.index.value if isinstance(call.index, Const) else 0

        def column(row: str) -> str:
            assert isinstance(call.value, Read)
            return column_text(row, str(call.value.column), self.shape)

        if call.name == "prior":
            return f"({column(f'recent[-{place + 1}]')} if len(recent) > {place} else None)"
        if call.name == "prevcount":
            return "len(window)"
        if call.name == "prevwindow":
            return f"[{column('y.row')} for y in reversed(window)]"
        at = f"window[{place}]" if call.name == "prevtail" else f"window[-{place + 1}]"
        return f"({column(f'{at}.row')} if len(window) > {place} else None)"

    @cached_property
    def depth(self) -> int:
        """The number of earlier rows that `prior` reads in place."""
        return prior_depth(self.calls) + 1 if self.is_inline else 0

    @property
    def keeps_left(self) -> bool:
        """True if rows that have left the queue are remembered: `prior` of those in it reads them later."""
        return bool(self.depth) and self.window is not None

    @property
    def notes_prior(self) -> bool:
        """True if each event has to remember those before it."""
        return not self.is_inline and any(call.name == "prior" for call in self.calls)
