"""Rules of one stream that share work: groups (`sql.engine.sampled.shared_groups`), or a stage of event time
(`sql.engine.event_time.shared_stage`).

Rules with equal signatures are a **cohort**, one entry of the filter index. Those of them whose state is
equal share, in one set or several; the others work alone. A rule leaves its set with a copy of the state, and
joins again when the states are equal.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from sql.emission import Emission
from sql.engine.families import At
from sql.engine.query import Running
from sql.rows import Shape

SHARING_MIN = 2
"""The least number of rules that share work."""

Defect = Callable[[str, Sequence[Any], int, Exception], list[Emission]]
"""Takes a rule, the events it loses, the instant and what was raised; gives what is said about it."""


def first_of(at: At) -> int:
    """The first of the instants."""
    return at if isinstance(at, int) else at[0]


class Shared(Protocol):
    """The work that several rules share."""

    def reconcile(self) -> None:
        """Let the rules' own counts include what was done for them."""

    def shares_with(self, name: str) -> list[str]:
        """The rules that share groups with a rule; none if it has no part in this work."""


Q = TypeVar("Q", bound=Running)
S = TypeVar("S", bound=Shared)


class Cohort(ABC, Generic[Q, S]):
    """Rules that may share work."""

    shape: Shape | None = None
    """How the columns of an event are read; None if their filters are evaluated elsewhere."""

    def __init__(self, queries: Sequence[Q], defect: Defect) -> None:
        self.queries = tuple(queries)
        self.names = tuple(query.name for query in queries)
        self.plan = self.queries[0].plan
        self.defect = defect
        self.shared: list[S] = []
        self.alone: list[Q] = []
        self.woken: list[str] = []

    def push_into(self, stream: str, rows: Sequence[Any], at: At, out: list[Emission]) -> Sequence[str]:
        """Events for all members; the rules whose deadline has changed."""
        self.woken = []
        self.regroup(first_of(at))
        alone = tuple(self.alone)
        for shared in tuple(self.shared):
            self.push_together(shared, stream, rows, at, out)
        for query in alone:
            self.push_alone(query, stream, rows, at, out)
        return self.woken

    @abstractmethod
    def regroup(self, now_ms: int) -> None:
        """Find out which members share before events come."""

    @abstractmethod
    def push_together(self, shared: S, stream: str, rows: Sequence[Any], at: At, out: list[Emission]) -> None:
        """Events for members that share."""

    def push_alone(self, query: Q, stream: str, rows: Sequence[Any], at: At, out: list[Emission]) -> None:
        """Events for a member that works alone."""
        deadline = query.next_deadline()
        try:
            query.push_into(stream, rows, at, out)
        except Exception as error:  # noqa: BLE001 - the rule boundary
            out += self.defect(query.name, rows, first_of(at), error)
        if query.next_deadline() != deadline:
            self.woken.append(query.name)

    def reconcile(self) -> None:
        """Let the members' own counts include what was done for them."""
        for shared in self.shared:
            shared.reconcile()

    def shares_with(self, name: str) -> list[str]:
        """The rules that share groups with a rule."""
        return [other for shared in self.shared for other in shared.shares_with(name)]


class Signed(Protocol):
    """A kind of rules that may share work."""

    @property
    def signature(self) -> Hashable | None:
        """Equal for rules that do the same with the same events; None for a rule that always works alone."""


R = TypeVar("R", bound=Signed)
P = TypeVar("P", bound=Cohort[Any, Any])


def cohorts(
    rules: Iterable[Running], kind: type[R], make: Callable[[Sequence[R], Defect], P], defect: Defect
) -> list[P]:
    """The cohorts among the rules of a kind, in order."""
    alike: dict[Hashable, list[R]] = {}
    for query in rules:
        if isinstance(query, kind):
            alike.setdefault(query.signature, []).append(query)
    return [
        make(members, defect)
        for signature, members in alike.items()
        if signature is not None and len(members) >= SHARING_MIN
    ]
