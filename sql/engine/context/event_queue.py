"""Events on their way to the statements of a context.

Events and the ends of cells wait for their statement (`Member.waiting`), which takes many at once. In a batch
they wait until something happens that they must not see. Outside of one only ends wait, until all that the
present event or instant ends has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sql.emission import Emission, joined
from sql.engine.context.bodies import Body, Cell, Member
from sql.engine.sharing import Defect
from sql.functions.definition import Context

Give = Callable[[Member, str, Sequence[Any], Sequence[Any], int], list[Emission]]
"""Passes events of a stream to a statement, each with its body, at an instant; the emissions."""

End = Callable[[Member, Sequence[Cell], int], list[Emission]]
"""Ends the partitions of cells of a statement at an instant; the emissions."""


class EventQueue:
    """The events and ends that wait, in order, and the emissions so far (`out`)."""

    def __init__(self, members: Mapping[str, Member], clock: Context, give: Give, end: End) -> None:
        self.members = members
        self.clock = clock
        self.give = give
        self.end = end
        self.out: list[Emission] = []
        self.stream: str | None = None
        """The stream of the batch that is being taken; None outside of one."""
        self.on_defect: Defect | None = None
        """Takes what a statement raised in a batch; None: it is raised on."""
        self.touched: list[Member] = []
        """The statements for which the present event waits, one entry for each partition. An event waits if
        it starts or ends partitions, or belongs to several."""
        self.mark: int | None = 0
        """Where the emissions of the present event start in `out`; None in a batch until it has some."""

    def begin_batch(self, stream: str, on_defect: Defect | None) -> None:
        """Events of one stream are taken together from now on."""
        self.stream, self.on_defect, self.mark = stream, on_defect, None

    def end_batch(self) -> None:
        """The batch has been taken; what still waits was not, because of a defect."""
        self.stream, self.on_defect, self.mark = None, None, 0
        if self.touched:
            self.touched.clear()
        for member in self.members.values():
            if member.rows:
                member.waiting.clear()
                member.rows.clear()

    def wait(self, body: Body, row: object) -> None:
        """The present event, or the end of a partition, waits for a body."""
        member = body.member
        member.waiting.append(body)
        member.rows.append(row)
        self.touched.append(member)

    def settle(self) -> None:
        """Something is about to happen that the waiting events must not see: they are done first."""
        if self.mark is None:
            self._give_earlier()
        self.flush()

    def end_event(self) -> None:
        """Finish an event of a batch that has changed partitions, or belongs to several.

        Rows that a statement emits in several partitions are one post.
        """
        if self.mark is None:
            if len(self.touched) == len(set(self.touched)):
                self.touched.clear()
                return
            self._give_earlier()
        self.flush()
        out, mark = self.out, self.mark
        if mark is not None and len(out) > mark + 1:
            out[mark:] = joined(out[mark:], self.members)
        self.mark = None

    def _give_earlier(self) -> None:
        """Give the events before the present one; its emissions begin here."""
        own = []
        for member in set(self.touched):
            first = len(member.rows) - self.touched.count(member)
            own.append((member, member.waiting[first:], member.rows[first:]))
            del member.waiting[first:], member.rows[first:]
        self._give_waiting()
        self.mark = len(self.out)
        for member, bodies, rows in own:
            member.waiting += bodies
            member.rows += rows

    def flush(self) -> None:
        """Give each statement the events that wait for it."""
        self._give_waiting()
        if self.touched:
            self.touched.clear()

    def _give_waiting(self) -> None:
        for member in self.members.values() if self.stream else reversed(tuple(self.members.values())):
            if member.rows:
                self._give_many(member)

    def _give_many(self, member: Member) -> None:
        """Give a statement what waits for it. Outside of a batch only ends do."""
        bodies, rows, now_ms = member.waiting, member.rows, self.clock.now_ms
        try:
            if self.stream is None:
                self.out += self.end(member, bodies, now_ms)
            else:
                self.out += self.give(member, self.stream, bodies, rows, now_ms)
        except Exception as error:  # the rule boundary of a batch
            if self.on_defect is None:
                raise
            events = [row for row in rows if row is not None]
            self.out += self.on_defect(member.name, events, now_ms, error)
        finally:
            bodies.clear()
            rows.clear()

    def take(self) -> list[Emission]:
        if self.touched:
            self.settle()
        out, self.out = self.out, []
        return out
