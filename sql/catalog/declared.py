"""A named window or table of which only the declaration is known, where statements
are bound and none runs."""

from __future__ import annotations

from typing import Any

from sql.plan.relations import TableDeclaration, WindowDeclaration


class Declared:
    """What binders ask of a relation."""

    def __init__(self, declaration: WindowDeclaration | TableDeclaration) -> None:
        self.declaration = declaration
        self.kind = "window" if isinstance(declaration, WindowDeclaration) else "table"
        self.name = declaration.name
        self.columns = tuple(declaration.columns)
        self.named: dict[str, Any] = {}
        """Its declared indexes, by name."""
