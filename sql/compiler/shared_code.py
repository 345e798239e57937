"""The values of the instance at work, as the functions of a compiled statement read them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sql.algebra.event import Event
from sql.catalog.streams import Catalog
from sql.codegen.support import Warnings
from sql.functions.definition import Context
from sql.plan.options import RuleOptions

Answer = Callable[[Event], Any]
"""The value of a subquery for an event."""


class SharedCode:
    """Functions that are made once for all instances: each begins its work by taking the seat."""

    def __init__(
        self,
        catalog: Catalog,
        options: RuleOptions,
        now_ms: int,
        rule_id: str,
        partition: Sequence[Any] = (),
        subqueries: int = 0,
    ) -> None:
        """`partition`: the properties of the first instance's context partition; `subqueries`: how many
        the functions read."""
        self.catalog = catalog
        self.partition = list(partition)
        """The properties of the context partition whose instance is at work."""
        self.context = Context(
            now_ms=now_ms,
            zone=options.zone_info(),
            rule_id=rule_id,
            start_ms=now_ms,
            partition=self.partition,
        )
        self.warnings = Warnings()
        self.answers: list[Answer] = [no_answer] * subqueries
        """The values of the subqueries of the instance at work."""

    def begin(
        self,
        now_ms: int,
        partition: Sequence[Any] | None,
        own: Sequence[Any],
        answers: Sequence[Answer],
    ) -> None:
        """Begin work of an instance: time, partition, what that has for itself, and answers are the
        instance's."""
        self.context.now_ms = now_ms
        if partition is not None:
            self.partition[:] = partition
        if own:
            self.catalog.own.at_work[:] = own
        if answers:
            self.answers[:] = answers


def no_answer(event: object) -> Any:
    """Stands for the value of a subquery before an instance works."""
    raise AssertionError("a subquery has no answer before there is an instance")
