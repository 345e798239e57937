"""Parameters without a type: those that are `Any`, also by another name of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.unit.tidy.sources import PACKAGES, functions, python_files, tree

Name = tuple[str, str]
"""A module, and a name that it defines."""

ANY: Name = ("typing", "Any")


def untyped_parameters(folder: str) -> Iterator[str]:
    """Each parameter below a folder that is Any, or Any or None: its place, its name and that of its type."""
    known = _names_of_any()
    for path in python_files(folder):
        names = _local(path, known)
        for function in functions(path):
            arguments = function.args
            for parameter in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                if parameter.annotation is not None and _is_any(parameter.annotation, names):
                    yield f"{path}:{function.lineno}: {parameter.arg}: {ast.unparse(parameter.annotation)}"


def _names_of_any() -> set[Name]:
    """Any and all of its aliases, those of aliases too."""
    paths = python_files(*PACKAGES)
    known: set[Name] = {ANY}
    while True:
        found = {(_module(path), alias) for path in paths for alias in _aliases(path, _local(path, known))}
        if found <= known:
            return known
        known |= found


def _module(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def _local(path: Path, known: set[Name]) -> set[str]:
    """The names that stand for Any in a file."""
    own = {name for module, name in known if module == _module(path)}
    return own | {
        item.asname or item.name
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ImportFrom)
        for item in node.names
        if (node.module, item.name) in known
    }


def _aliases(path: Path, names: set[str]) -> Iterator[str]:
    """The names at the top of a file that are assigned one of `names`."""
    for node in tree(path).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value and _is_any(node.value, names):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def _is_any(node: ast.expr, names: set[str]) -> bool:
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
        return node.value in names
    if isinstance(node, ast.BinOp):  # `Any | None`
        return _is_any(node.left, names) or _is_any(node.right, names)
    return isinstance(node, ast.Name) and node.id in names
