"""Types that inherit others: an event of several types is one event to each statement."""

from __future__ import annotations

from sql.catalog.streams import Catalog
from sql.errors import Problems, Span
from sql.plan.logical import Plan


def check_types(problems: Problems, plan: Plan, catalog: Catalog, span: Span) -> None:
    """Report a statement that would take an event several times, because it reads several of its types."""
    for name, stream in catalog.streams.items():
        read = [known for known in catalog.lineage(name) if known in plan.reads] if stream.inherits else []
        if len(read) > 1:
            types = " and of ".join(f"'{known}'" for known in read)
            message = f"an event of '{name}' is one of {types}, and the statement reads both"
            hint = f"read '{read[-1]}' alone, and tell its types apart by a column"
            problems.error("B108", message, span, hint)
            return
