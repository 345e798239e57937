"""The files of this project, as the house rules look at them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[3]
PACKAGES = ("edge", "cloud_sync", "sinks", "rules", "sql")


MADE = {"__pycache__", "build", "dist", "demo-run"}
"""Folders that commands make; hidden ones but `.ci` are left out as well."""


@cache
def committed() -> tuple[Path, ...]:
    """Every file that is, or should be, committed; relative to the root. Needs no git, so an archive is
    checked too."""
    return tuple(sorted(path.relative_to(ROOT) for path in _below(ROOT)))


def _below(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_file():
            if path.name != ".git":  # in a linked work tree it is a file that names the machine
                yield path
        elif path.name == ".ci" or not (
            path.name.startswith(".") or path.name in MADE or path.suffix == ".egg-info"
        ):
            yield from _below(path)


def python_files(*folders: str) -> list[Path]:
    """The Python files of some top-level folders; of all without any."""
    return [
        path for path in committed() if path.suffix == ".py" and (not folders or path.parts[0] in folders)
    ]


@cache
def text(path: Path) -> str:
    """The content of a file."""
    return (ROOT / path).read_text(encoding="utf-8")


@cache
def tree(path: Path) -> ast.Module:
    """The syntax tree of a Python file."""
    return ast.parse(text(path), filename=str(path))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function of a file, at any depth."""
    return (node for node in ast.walk(tree(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def none(found: Iterable[str]) -> None:
    """Fail with all findings, one a line."""
    lines = list(found)
    assert not lines, "\n" + "\n".join(lines)
