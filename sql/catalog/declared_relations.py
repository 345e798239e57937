"""Named windows and tables without rows, for statements that are bound and not run."""

from __future__ import annotations

from typing import Any

from sql.plan.declared import TableDeclaration, WindowDeclaration


class Declared:
    """A relation with its declaration only, in the interface that binders use."""

    def __init__(self, declaration: WindowDeclaration | TableDeclaration) -> None:
        self.declaration = declaration
        self.kind = "window" if isinstance(declaration, WindowDeclaration) else "table"
        self.name = declaration.name
        self.columns = tuple(declaration.columns)
        self.named: dict[str, Any] = {}
        """Its declared indexes, by name."""
