"""The columns that a statement reads of its streams: messages are decoded for them, and for no others."""

from __future__ import annotations

import pytest

from sql.binder.rule import plan_rule
from sql.catalog.streams import Catalog
from sql.language import parse
from sql.plan.options import RuleOptions

FREE = 'CREATE STREAM free () WITH (DATASOURCE="free")'
DECLARED = 'CREATE STREAM declared (a FLOAT, b FLOAT) WITH (DATASOURCE="declared")'
MATCH = "match_recognize (measures A.average as m pattern (A) define A as A.average > 1)"


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("select x from free#length(3)", {"free": {"x"}}),
        ("select average from declared#length(3)#uni(a)", {"declared": {"a"}}),
        ("select average, b from declared#length(3)#uni(a, *)", {"declared": {"a", "b"}}),
        # The added columns are not known, so all are decoded.
        ("select average from free#length(3)#uni(x, *)", {"free": None}),
        ("select average from free(y > 1)#length(3)#uni(x, *)", {"free": None}),
        # match_recognize reads the columns of `uni`, and `uni` those of the stream.
        (f"select m from declared#length(3)#uni(a) {MATCH}", {"declared": {"a"}}),
        (f"select m from free(y > 1)#length(3)#uni(x) {MATCH}", {"free": {"x", "y"}}),
    ],
)
def test_the_columns_that_a_statement_reads(text: str, reads: dict[str, set[str] | None]) -> None:
    catalog = Catalog()
    for declaration in (FREE, DECLARED):
        (stream,) = parse(declaration)
        catalog.define(stream)  # type: ignore[arg-type]
    assert plan_rule(text, catalog, RuleOptions()).reads == reads
