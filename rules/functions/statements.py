"""Which Python files are function files: those that only define.

Every `*.py` file of a rule directory is read, and a directory may hold scripts too. What a script does when
it is run must not happen because somebody checks a rule beside it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

_DEFINITIONS = frozenset(
    {
        "Import",
        "ImportFrom",
        "FunctionDef",
        "AsyncFunctionDef",
        "ClassDef",
        "Assign",
        "AnnAssign",
        "TypeAlias",
        "Pass",
    }
)
"""Names of classes of `ast`, not all of which every Python has."""


def first_script_line(module: ast.Module) -> int | None:
    """The line of the first statement that is run for its effect; None if the file only defines.

    >>> first_script_line(ast.parse("import re\\nWORD = re.compile('a')\\nprint(WORD)"))
    3
    """
    return _first_effect(module.body)


def _first_effect(body: Iterable[ast.stmt]) -> int | None:
    return next((line for statement in body if (line := _effect(statement)) is not None), None)


def _effect(statement: ast.stmt) -> int | None:
    """Where a statement has an effect; a condition or a `try` around definitions is none."""
    if type(statement).__name__ in _DEFINITIONS or _is_text(statement):
        return None
    if isinstance(statement, ast.If):
        return None if _is_main_guard(statement) else _first_effect([*statement.body, *statement.orelse])
    if isinstance(statement, ast.Try):
        handled = [inner for handler in statement.handlers for inner in handler.body]
        return _first_effect([*statement.body, *handled, *statement.orelse, *statement.finalbody])
    return statement.lineno


def _is_text(statement: ast.stmt) -> bool:
    """Whether it is a docstring or another constant that stands alone."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_main_guard(statement: ast.If) -> bool:
    """Whether it is `if __name__ == "__main__"`, whose body is not run here."""
    test = statement.test
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"
