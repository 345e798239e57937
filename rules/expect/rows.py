"""The evaluation of checks: over a row, and beside the query of their rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rules.expect.model import Expect
from rules.problems import FileProblem
from rules.read.reading import LoadedRule
from sql import Plan
from sql.errors import did_you_mean
from sql.types import Type


def broken(checks: Sequence[Expect], row: Mapping[str, Any]) -> list[int]:
    """The positions of the checks that a row breaks."""
    return [
        number
        for number, check in enumerate(checks)
        if check.column is not None and check.is_broken_by(row.get(check.column))
    ]


def problems_of(rule: LoadedRule, plan: Plan) -> Iterator[FileProblem]:
    """Checks of columns that the SELECT lacks, and ranges of columns that hold no numbers."""
    columns = plan.output_columns
    if columns is None:
        return
    for number, check in enumerate(rule.rule.expect):
        if check.column is None:
            continue
        path = (*rule.path, "expect", number, "column")
        span = rule.reading.document.value_span(path)
        if check.column not in columns:
            hint = did_you_mean(check.column, columns) or f"it has {', '.join(columns) or 'none'}"
            message = f"the SELECT has no column '{check.column}'"
            yield rule.reading.text.problem("R112", message, span, hint)
        elif check.range is not None and not Type.NUMBER.accepts(columns[check.column]):
            message = f"column '{check.column}' holds {columns[check.column].value}, which has no range"
            yield rule.reading.text.problem("R112", message, span, "check numbers, or use notNull")
