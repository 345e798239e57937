"""Rules and tables that can run, as plain data. The process that runs them needs none of the modules that
read rule files (`rules.compile`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sql.plan.relation_plan import RelationPlan
from sql.record import Record, field, replace

if TYPE_CHECKING:
    from rules.loader import Loaded
    from rules.model import Action
    from rules.options import Options
    from rules.problems import FileProblem
    from rules.read.reading import LoadedRule, LoadedStream
    from sql.catalog.streams import Catalog, Stream
    from sql.plan.logical import Plan


class CompiledRule(Record):
    """A rule that can run."""

    rule: LoadedRule
    plan: Plan
    actions: tuple[Action, ...]
    """The rule's actions, bound to the plan."""
    hash: str
    """Eight digits that are equal where gateways run the same rule: the query, what it computes with, its
    options."""

    @property
    def id(self) -> str:
        return self.rule.id

    @property
    def path(self) -> str:
        """The path of the rule's file, as used in problems."""
        return self.rule.reading.text.path

    @property
    def options(self) -> Options:
        return self.rule.options

    @property
    def placed_actions(self) -> list[tuple[str, int, Action]]:
        """All actions, each with the name of its list and its place there."""
        lists = {"actions": self.actions, "late": self.rule.late, "error": self.rule.error}
        return [(role, at, action) for role, listed in lists.items() for at, action in enumerate(listed)]

    def without_text(self) -> CompiledRule:
        """The same rule without the text of its file: a rule that runs needs no positions."""
        return replace(self, rule=self.rule.without_text())


class CompiledTable(Record):
    """A table or named window that can be created."""

    path: str
    """The path of its file, as used in problems."""
    relation: RelationPlan


class Compiled(Record):
    """The result for the files asked for: rules that can run, and the problems of the rest, by position."""

    loaded: Loaded
    catalog: Catalog
    rules: dict[str, CompiledRule]
    problems: list[FileProblem] = field(default_factory=list)
    tables: dict[str, CompiledTable] = field(default_factory=dict)

    @property
    def streams(self) -> list[tuple[LoadedStream, Stream]]:
        """The statements of the streams and tables of these files, and what each declares."""
        declared = self.catalog.streams
        return [
            (loaded, declared[loaded.name])
            for file in self.loaded.files
            for loaded in file.streams
            if loaded.name in declared
        ]

    @property
    def ok(self) -> bool:
        """True if there are no errors; there may be notes."""
        return not any(problem.is_error for problem in self.problems)
