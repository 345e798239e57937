"""The makers of statements that are no queries, by what they do."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sql.compiler.shared_code import Environment
from sql.engine.query import MakeInstance
from sql.engine.relations.declaring import (
    TableCode,
    TableStatement,
    VariableStatement,
    WindowCode,
    WindowStatement,
)
from sql.engine.relations.on_change import ActingCode, ActingStatement, SplitCode, SplitStatement
from sql.engine.relations.on_select import select_code
from sql.engine.relations.on_set import SetCode, SetStatement
from sql.engine.relations.update_stream import UpdateStreamCode, UpdateStreamStatement
from sql.plan.declared import TableDeclaration, VariableDeclaration, WindowDeclaration
from sql.plan.logical import ChoicePlan, Plan, SetPlan, SplitPlan, TriggerPlan, UpdateStreamPlan

ACTING: dict[type, Callable[[Plan, Environment], MakeInstance]] = {
    TriggerPlan: lambda plan, env: partial(ActingStatement, ActingCode(plan, env)),
    SplitPlan: lambda plan, env: partial(SplitStatement, SplitCode(plan, env)),
    ChoicePlan: select_code,
    SetPlan: lambda plan, env: partial(SetStatement, SetCode(plan, env)),
    UpdateStreamPlan: lambda plan, env: partial(UpdateStreamStatement, UpdateStreamCode(plan, env)),
    WindowDeclaration: lambda plan, env: partial(WindowStatement, WindowCode(plan, env)),
    TableDeclaration: lambda plan, env: partial(TableStatement, TableCode(plan)),
    VariableDeclaration: lambda plan, env: partial(VariableStatement, plan),
}
