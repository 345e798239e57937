"""Values of earlier events that the text reads where they stand: `prior`, and `prev` over a queue."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from sql.codegen.reader import RowReader
from sql.plan.bound import Const, PrevCall, Read

if TYPE_CHECKING:
    from sql.compiler.statement_text import StatementText


class Earlier:
    """The calls that are read in the text, and the expressions that read them."""

    def __init__(self, text: StatementText) -> None:
        self.text = text

    def is_inline(self, call: PrevCall) -> bool:
        """True if a value of an earlier event is read where it stands: at a fixed place of
        a queue, for new rows."""
        show = self.text.show
        if not self.text.is_driven or self.text.is_joined or show.has_old or show.defers:
            return False
        if not isinstance(call.value, Read) or call.value.column is None:
            return False
        if not (call.index is None or isinstance(call.index, Const)):
            return False
        if isinstance(call.index, Const) and (call.index.value.__class__ is not int or call.index.value < 0):
            return False
        if call.name == "prior" and not self.text.has_window:
            return True
        return self.text.window is not None and self.text.window.is_queue

    def text_of(self, call: PrevCall) -> str:
        assert isinstance(call.value, Read)
        reader = RowReader(self.text.names, self.text.catalog, self.text.shape, {}, joined=False)
        place = call.index.value if isinstance(call.index, Const) else 0

        def column(row: str) -> str:
            assert isinstance(call.value, Read)
            return reader._column(row, str(call.value.column))

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
        depths = [
            call.index.value
            for call in self.text.plan.prevs
            if call.name == "prior" and self.is_inline(call) and isinstance(call.index, Const)
        ]
        return max(depths, default=-1) + 1

    @property
    def keeps_left(self) -> bool:
        """True if rows that have left the queue are remembered: `prior` of those in it reads them later."""
        return bool(self.depth) and self.text.window is not None

    @property
    def notes_prior(self) -> bool:
        """True if each event has to remember those before it."""
        return any(call.name == "prior" and not self.is_inline(call) for call in self.text.plan.prevs)
