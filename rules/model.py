"""The model of a rule file.

    one rule, as eKuiper writes it      id, name, sql, actions, options
    or several things                   streams, tables, contexts, rules, tests, expressions, variables

The models give types, bounds, JSON Schema and descriptions. Sinks stand above this package, so they announce
the settings of their action with `register_action`; an action that is not registered does not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

from pydantic import BaseModel, Field

from rules.base import Model
from rules.contexts import Context
from rules.expect.expectation import Expect
from rules.options import Options
from rules.scenario import Test
from rules.source.document import Path
from rules.streams import Stream
from rules.tables import SourceTable, Table
from sql import Plan
from sql.errors import Severity
from sql.record import Record

ID_PATTERN = r"^[\w.:-]{1,128}$"
"""The form of a rule's id: it names states, metrics and log lines."""

Variable = bool | int | float | str | None


class Rule(Model):
    """A query that runs for ever, and the actions that receive its results."""

    id: str | None = Field(
        None,
        # Not ID_PATTERN: pydantic's engine unrolls a counted repetition of \w into twelve megabytes.
        pattern=r"^[\w.:-]+$",
        max_length=128,
        description="unique name: letters, digits and _ . : -; not needed in a mapping by id",
    )
    name: str | None = Field(None, description="a name for people")
    sql: str = Field(min_length=1, description="the query, in eKuiper SQL, EPL or as a stream query")
    context: str | None = Field(
        None,
        description="the context in whose partitions the rule runs; or write CONTEXT and its name in sql",
    )
    actions: list[dict[str, Any]] = Field(
        default_factory=list,
        description="where results go: a list of 'sink: settings'; each gets every result",
    )
    late: list[dict[str, Any]] = Field(
        default_factory=list,
        description="where late events go (event time); without it they are only counted",
    )
    error: list[dict[str, Any]] = Field(
        default_factory=list,
        description="where events go that the query cannot evaluate; default: the dead letters",
    )
    options: Options = Field(
        default_factory=lambda: Options.model_validate({}),
        description="how the rule treats time, bounds and its results",
    )
    expect: list[Expect] = Field(
        default_factory=list,
        description=(
            "checks of the rule's rows: ranges, columns that are never NULL, how old the newest row may be"
        ),
    )
    tests: list[Test] = Field(default_factory=list, description="tests of this rule, run by 'penstock test'")
    scope: Literal["gateway", "fleet"] = Field(
        "gateway",
        description="fleet: the rule runs in the cloud, over the events of all gateways "
        "('penstock cloud stream'); here it is checked and tested, but not started",
    )
    triggered: bool = Field(True, description="false: the rule is checked and tested, but not started")
    tags: list[str] = Field(default_factory=list, description="words to find the rule by")
    version: str | int | None = Field(None, description="no effect: a file is compared by its content")
    temp: bool = Field(False, description="no effect: rules live in files only")


class RuleFile(Model):
    """A file with several streams, rules and tests."""

    streams: list[str | Stream] | dict[str, str | Stream] = Field(
        default_factory=list,
        description="streams, each as a CREATE STREAM text or as a mapping; a list, or by name",
    )
    rules: list[Rule] | dict[str, Rule] = Field(default_factory=list, description="rules, as a list or by id")
    tests: list[Test] = Field(default_factory=list, description="tests, each naming its rule")
    contexts: dict[str, str | Context] = Field(
        default_factory=dict,
        description="contexts by name: what follows 'create context NAME', alone or with bounds",
    )
    tables: dict[str, str | Table | SourceTable] = Field(
        default_factory=dict,
        description="tables by name: 'create table …' or 'create window …', alone or with bounds; "
        "or with `kind` a table whose rows a source or a store has",
    )
    expressions: dict[str, str] = Field(
        default_factory=dict,
        description="expressions that queries call by name: 'x => x.high - x.low', "
        "'(a, b) => a + b', or without parameters",
    )
    variables: dict[str, Variable] = Field(
        default_factory=dict, description="variables that queries may read, with their first values"
    )


NO_EFFECT = {
    "version": "a file is compared by its content",
    "temp": "rules live in files only",
}
"""Keys of a rule that eKuiper writes and that have no effect here."""


class Action(Record):
    """One action of a rule: the sink's name, its validated settings, and its path in the file."""

    sink: str
    settings: BaseModel
    path: Path


class ActionProblem(Record):
    """An error of an action, found by comparison with the query of its rule. `path` leads from its settings
    to the error."""

    message: str
    path: Path = ()
    hint: str | None = None
    severity: Severity = "error"


Bind = Callable[[Any, Plan], tuple[BaseModel, Iterable[ActionProblem]]]
"""A function that completes the settings of an action from the plan of its rule; it returns them with the
problems found."""


Widen = Callable[[Any, Plan], Plan]
"""A function that adds to the plan of a rule the columns that an action with these settings needs beside
those of the SELECT (`Plan.states`)."""


class ActionKind(Record):
    """A registered action: the model of its settings, the function that binds them to a plan, if any,
    and the one that adds columns to it before."""

    settings: type[Model]
    bind: Bind | None = None
    widen: Widen | None = None


_actions: dict[str, ActionKind] = {}
_providers: list[Callable[[str | None], object]] = []


def register_action(
    name: str, settings: type[Model], bind: Bind | None = None, widen: Widen | None = None
) -> None:
    """Make `name` usable as an action, with settings of this model. Registering the same
    kind again does nothing.

    Settings may hold secrets: a field that can take one must accept `rules.secrets.Secret`.
    """
    kind = ActionKind(settings, bind, widen)
    assert _actions.get(name, kind) == kind, f"action {name!r} is registered twice"
    _actions[name] = kind


def provide_actions(load: Callable[[str | None], object]) -> None:
    """Call `load` with the name of an action that is not registered yet, and with None before all are listed.
    A process has no use for those that its rules do not name."""
    if load not in _providers:
        _providers.append(load)


def action_kind(name: str) -> ActionKind | None:
    """The kind of an action; None for an unknown one."""
    for load in _providers:
        if name not in _actions:
            load(name)
    return _actions.get(name)


def action_settings(name: str) -> type[Model] | None:
    """The settings model of an action; None for an unknown one."""
    kind = action_kind(name)
    return kind.settings if kind else None


def action_names() -> tuple[str, ...]:
    """All actions, sorted."""
    for load in _providers:
        load(None)
    return tuple(sorted(_actions))
