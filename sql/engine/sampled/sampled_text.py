"""The compiled text of a rule with a window in GROUP BY."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sql.algebra.output.row_order import row_limit
from sql.algebra.sample.compose import compose
from sql.algebra.sample.core import CoreCode
from sql.algebra.sample.instance import Tap
from sql.algebra.sample.sampled_rows import SampledRows
from sql.algebra.sample.source_join import JoinCode
from sql.catalog.streams import Catalog
from sql.codegen.functions import FunctionSet
from sql.codegen.hits import HitCounters
from sql.compiler.shared_code import SharedCode
from sql.engine.statement.running_query import MakeRow
from sql.plan.logical import Plan
from sql.rows import Shape


class SampledText(SharedCode):
    """The functions of a rule with a window in GROUP BY, made once for all its instances."""

    def __init__(
        self,
        name: str,
        plan: Plan,
        catalog: Catalog,
        now_ms: int,
        partition: Sequence[Any] | None = None,
        *,
        shape: Shape = "dict",
        make_row: MakeRow | None = None,
        tap: Tap | None = None,
        by_instants: bool = False,
    ) -> None:
        """`tap` observes the windows; `by_instants`: events come with an instant each,
        in processing time too."""
        super().__init__(catalog, plan.options, now_ms, name, partition or ())
        self.plan = plan
        self.shape = shape
        self.make_row = make_row or (lambda row: row)
        self.hits = HitCounters(plan.hits)
        """The hits of the instance at work."""
        self.is_timed = by_instants or plan.timestamp is not None
        self.functions = self.text_functions()
        self.row_limit = row_limit(plan, self.functions)
        self.join = JoinCode(plan, self.functions) if plan.joins else None
        self.made = compose(
            plan,
            catalog,
            shape,
            self.hits,
            self.context.zone,
            self.make_row,
            is_timed=self.is_timed,
            tap=tap,
        )
        self.core = CoreCode(self.made, self.text_functions())
        self.sampled_rows = SampledRows(
            plan, catalog, shape, self.text_functions(), self.hits, self.made.entries
        )

    def text_functions(self) -> FunctionSet:
        """The writer of expressions for a text of its own."""
        found = FunctionSet(
            self.catalog,
            self.context,
            self.warnings,
            shape=self.shape,
            joined=bool(self.plan.joins),
            text=self.plan.text,
            hits=self.hits,
            literals=False,
        )
        found.names.bound["partition"] = self.partition
        return found
