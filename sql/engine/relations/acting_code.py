"""The code of statements that are no queries, by what they do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sql.catalog.streams import Catalog
from sql.engine.relations.declaring import TableCode, VariableCode, WindowCode
from sql.engine.relations.on_change import ActingCode, SplitCode
from sql.engine.relations.on_select import select_code
from sql.engine.relations.on_set import SetCode
from sql.plan.declared import TableDeclaration, VariableDeclaration, WindowDeclaration
from sql.plan.logical import ChoicePlan, Plan, SetPlan, SplitPlan, TriggerPlan

if TYPE_CHECKING:
    from sql.engine.query import CompiledStatement

Make = Callable[[str, Plan, Catalog, int, "Sequence[Any] | None"], "CompiledStatement"]

ACTING: dict[type, Make] = {
    TriggerPlan: ActingCode,
    SplitPlan: SplitCode,
    ChoicePlan: select_code,
    SetPlan: SetCode,
    WindowDeclaration: WindowCode,
    TableDeclaration: TableCode,
    VariableDeclaration: VariableCode,
}
