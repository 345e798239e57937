"""The values of the instance at work, as the functions of a compiled statement read them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sql.algebra.event import Event
from sql.catalog.streams import Catalog
from sql.codegen.functions import FunctionSet
from sql.codegen.support import Warnings
from sql.functions.definition import Context
from sql.plan.options import RuleOptions
from sql.record import Record
from sql.rows import MakeRow, Shape, as_it_is

Answer = Callable[[Event], Any]
"""The value of a subquery for an event."""


class Environment(Record):
    """The environment of a statement.

    name       its name
    catalog    streams, variables and relations; in a context with those that the partition has for itself
    now_ms     the instant at which it starts
    partition  the properties of the context partition that the instance belongs to; None outside of contexts
    shape      how the rows of its streams are read
    """

    name: str
    catalog: Catalog
    now_ms: int
    partition: Sequence[Any] | None = None
    shape: Shape = "dict"
    make_row: MakeRow = as_it_is


class SharedCode:
    """Functions that are made once for all instances."""

    def __init__(self, env: Environment, options: RuleOptions, subqueries: int = 0) -> None:
        """`env`: that of the first instance; `subqueries`: how many the functions read."""
        self.env = env
        self.options = options
        self.catalog = env.catalog
        self.partition = list(env.partition or ())
        """The properties of the context partition whose instance is at work."""
        self.context = Context(
            now_ms=env.now_ms,
            zone=options.zone_info(),
            rule_id=env.name,
            start_ms=env.now_ms,
            partition=self.partition,
        )
        self.warnings = Warnings()
        self.answers: list[Answer] = [no_answer] * subqueries
        """The values of the subqueries of the instance at work."""

    def function_set(self, **options: Any) -> FunctionSet:
        """A set of functions over the rows of the streams; `options` are those of `FunctionSet`."""
        options = {"shape": self.env.shape, "subqueries": self.answers, **options}
        return FunctionSet(self.catalog, self.context, self.warnings, **options)


class InstanceData:
    """The data of one instance that shared functions read; an instance installs them when it begins work.

    partition  the properties of its context partition, None outside of contexts
    answers    the values of its subqueries
    """

    __slots__ = ("answers", "code", "own", "partition")

    def __init__(self, code: SharedCode, env: Environment, answers: Sequence[Answer] = ()) -> None:
        self.code = code
        self.partition = env.partition
        self.own = code.catalog.own.found(env.catalog.variables, env.catalog.relations)
        self.answers = answers

    def install(self, now_ms: int) -> None:
        """Begin work of the instance at this instant."""
        code = self.code
        code.context.now_ms = now_ms
        if self.partition is not None:
            code.partition[:] = self.partition
        if self.own:
            code.catalog.own.at_work[:] = self.own
        if self.answers:
            code.answers[:] = self.answers


def no_answer(event: object) -> Any:
    """Stands for the value of a subquery before an instance works."""
    raise AssertionError("a subquery has no answer before there is an instance")
