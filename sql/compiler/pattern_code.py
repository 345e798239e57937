"""The code of a pattern in FROM, made once for all instances of the statement."""

from __future__ import annotations

from sql.algebra.pattern import PatternBuilder
from sql.codegen.functions import PatternReader
from sql.compiler.shared_code import SharedCode
from sql.plan.clauses import SourcePlan


class PatternCode:
    """The functions of a pattern's filters and parameters, which read the instance at work."""

    def __init__(self, source: SourcePlan, around: SharedCode) -> None:
        assert source.pattern is not None
        self.source = source
        self.plan = source.pattern
        self.streams = frozenset(self.plan.streams)
        self.functions = around.function_set(text=self.plan.text, kind=PatternReader, subqueries=())
        builder = PatternBuilder(self.plan, self.functions, around.context.zone, around.options)
        self.pattern = builder.fastest()
        """Makes a pattern, not yet started, given what takes its errors."""
