"""The code of statements that run no loop: triggers and declarations."""

from __future__ import annotations

import pytest

from sql import Catalog, parse, plan_rule
from sql.binder.statements.any_statement import bind_statement
from sql.explain.code import explain_code
from sql.plan.options import RuleOptions
from tests.support.engines import engine_of

DECLARED = """
create schema E (k string, n int);
create variable int level = 0;
create window W#keepall as E
"""


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return engine_of(DECLARED).catalog


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "on E merge W where W.k = E.k when matched then delete",
            "def work(rows, relation, forward, changed, events, now):",
        ),
        (
            "on E(n > 1) as e update W set n = e.n where W.k = e.k",
            "def work(rows, relation, forward, changed, events, now):",
        ),
        ("on E set level = n + 1", "+ 1"),
        ("on E select W.n as n from W where W.k = E.k", "def "),
        ("on E select and delete W.n as n from W where W.k = E.k", "def "),
        ("on E insert into A select k where n > 3 insert into B select n", "> 3"),
    ],
)
def test_triggers(catalog: Catalog, sql: str, expected: str) -> None:
    shown = explain_code("r", plan_rule(sql, catalog), catalog)
    assert expected in "\n".join(line for line in shown.splitlines() if not line.startswith("#"))


def test_declarations_run_none(catalog: Catalog) -> None:
    text = "create window V#keepall as E"
    plan = bind_statement(parse(text)[0], catalog, RuleOptions(), text)
    assert explain_code("r", plan, catalog).endswith(
        "# A declaration runs no code: the statements that write and read it do.\n"
    )
