"""Recognize function files: Python files that contain only definitions.

Every `*.py` file of a rule directory is read, and a directory may hold scripts too. A check of the rules
beside a script must not run it.
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
"""Names of classes of `ast`, some of which older versions of Python lack."""


def first_script_line(module: ast.Module) -> int | None:
    """The line of the first statement that is run for its effect; None if the file only defines.

    >>> first_script_line(ast.parse("import re\\nWORD = re.compile('a')\\nprint(WORD)"))
    3
    """
    return _first_effect(module.body)


def _first_effect(body: Iterable[ast.stmt]) -> int | None:
    return next((line for statement in body if (line := _effect(statement)) is not None), None)


def _effect(statement: ast.stmt) -> int | None:
    """The line of a statement with an effect; None for definitions, also inside a condition or a `try`."""
    if type(statement).__name__ in _DEFINITIONS or _is_text(statement):
        return None
    if isinstance(statement, ast.If):
        return None if _is_main_guard(statement) else _first_effect([*statement.body, *statement.orelse])
    if isinstance(statement, ast.Try):
        handled = [inner for handler in statement.handlers for inner in handler.body]
        return _first_effect([*statement.body, *handled, *statement.orelse, *statement.finalbody])
    return statement.lineno


def _is_text(statement: ast.stmt) -> bool:
    """True for a docstring or another constant that stands alone."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_main_guard(statement: ast.If) -> bool:
    """True for `if __name__ == "__main__"`, whose body is not run here."""
    test = statement.test
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"
