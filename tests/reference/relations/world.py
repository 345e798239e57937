"""Named windows, tables, triggers, joins and subqueries by the book: statements that share relations.

Nothing is indexed and nothing is kept up to date: contents are lists,
and each change computes what was and what is. What a step is stands in docs/relations.md,
"Order within an event".
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from sql.plan.declared import TableDeclaration, WindowDeclaration
from sql.plan.logical import ChoicePlan, Plan, TriggerPlan
from tests.reference.expressions import Row
from tests.reference.members import Delta
from tests.reference.relations.acting import Acting, Choosing
from tests.reference.relations.matching import Matching
from tests.reference.relations.statements import NOTHING, Listening, Query, Statement
from tests.reference.relations.stores import NamedWindow, Refused, Store, Table
from tests.reference.windows import earliest

Post = tuple[int, str, list[Row], list[Row]]
"""When, which statement, the rows that came and those that left."""


class World:
    """All statements, the relations that they share, and the queues between them."""

    def __init__(self, plans: Iterable[tuple[str, Plan]]) -> None:
        self.now = self.seq = 0
        self.stores: dict[str, Store] = {}
        self.statements: list[Statement] = []
        self.front: list[tuple[Store, Row]] = []
        self.back: list[tuple[str, Row]] = []
        self.pending: dict[str, dict[str, Delta]] = {}
        self.posts: list[Post] = []
        for name, plan in plans:
            if isinstance(plan.acts, TableDeclaration):
                self.stores[plan.acts.name] = Table(plan.acts)
                continue
            if isinstance(plan.acts, WindowDeclaration):
                self.stores[plan.acts.name] = NamedWindow(plan.acts, self.now)
            kinds: dict[type, type[Statement]] = {
                WindowDeclaration: Listening,
                ChoicePlan: Choosing,
                TriggerPlan: Acting,
            }
            if plan.selector == "rstream" or type(plan.acts) not in (*kinds, type(None)):
                raise NotImplementedError("the twin of relations has no remove stream, no split streams")
            is_matching = any(source.pattern is not None for source in plan.sources)
            kind = Matching if is_matching else kinds.get(type(plan.acts), Query)
            self.statements.append(kind(name, plan, self))
        self.statements.sort(key=lambda statement: -statement.plan.priority)

    def number(self) -> int:
        self.seq += 1
        return self.seq

    # --- what statements cause ------------------------------------------------------------------------------

    def post(self, name: str, plan: Plan, new: list[Row], old: list[Row]) -> None:
        """What a statement gives to its listener, and moves on by `insert into`."""
        if plan.selector == "istream" and plan.acts is None:
            old = []
        if not new and not old:
            return
        self.posts.append((self.now, name, new, old))
        for row in new if plan.insert is not None else ():
            assert plan.insert is not None
            self.forward(plan.insert.stream, row)

    def forward(self, into: str, row: Row) -> None:
        if into in self.stores:
            self.front.append((self.stores[into], row))
        else:
            self.back.append((into, row))

    def publish(self, store: Store, delta: Delta) -> None:
        """Consumers will be told: all changes of one as one."""
        if isinstance(store, Table) or not (delta.inserted or delta.removed):
            return
        for statement in self.statements:
            own = statement.plan.acts
            listens = isinstance(own, WindowDeclaration) and own.name == store.name
            if listens or any(source.plan.stream == store.name for source in statement.all_sources):
                changes = self.pending.setdefault(statement.name, {})
                known = changes.get(store.name, NOTHING)
                changes[store.name] = Delta(
                    [*known.inserted, *delta.inserted], [*known.removed, *delta.removed]
                )

    # --- steps ----------------------------------------------------------------------------------------------

    def send(self, stream: str, row: Row) -> list[Post]:
        """An event arrives, and all that it causes happens."""
        for statement in self.statements:
            statement.event(stream, row)
        return self._finished()

    def advance(self, now: int) -> list[Post]:
        """Time goes on, through every instant at which something is due."""
        out: list[Post] = []
        while (due := self.due_ms()) is not None:
            if due > now:
                break
            self.now = due
            for store in self.stores.values():
                self.publish(store, store.advance(due))
            for statement in self.statements:
                statement.advance(due)
            out += self._finished()
        self.now = now
        return out

    def due_ms(self) -> int | None:
        """When time alone changes something next."""
        stores = [store.due_ms() for store in self.stores.values()]
        return earliest([*stores, *(statement.due_ms() for statement in self.statements)])

    def _finished(self) -> list[Post]:
        if not self.front:
            self._dispatch()
        while self.front or self.back:
            if self.front:
                store, row = self.front.pop(0)
                with suppress(Refused):
                    self.publish(store, store.write([(None, row)], (), self.now))
                    for statement in self.statements:
                        statement.entered(store.name, row)
            else:
                stream, row = self.back.pop(0)
                for statement in self.statements:
                    statement.event(stream, row)
            self._dispatch()
        out, self.posts = self.posts, []
        return out

    def _dispatch(self) -> None:
        """Tell consumers what has changed, until nothing has; each posts once."""
        posted, self.posts = self.posts, []
        while self.pending:
            pending, self.pending = self.pending, {}
            for statement in self.statements:
                if statement.name in pending:
                    statement.told(pending[statement.name])
        merged: dict[str, Post] = {}
        for at, name, new, old in self.posts:
            _, _, came, left = merged.get(name, (at, name, [], []))
            merged[name] = at, name, [*came, *new], [*left, *old]
        self.posts = [*posted, *merged.values()]
