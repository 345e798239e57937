"""The house rules that a machine can check. Each finding names the place, what is wrong,
and what to do instead."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.unit.tidy.sources import PACKAGES, ROOT, committed, functions, none, python_files, text, tree

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70

CLOCK_READERS = {Path("edge/clock.py"), Path("rules/functions/guard.py")}
"""The second one measures the calls of functions; no result depends on it."""
NOW = {("datetime", "now"), ("datetime", "utcnow"), ("datetime", "today"), ("date", "today")}

TEXT_SUFFIXES = {
    ".py",
    ".md",
    ".toml",
    ".yaml",
    ".yml",
    ".json",
    ".jsonl",
    ".txt",
    ".cfg",
    ".sh",
    ".service",
    "",
}

UNFINISHED = re.compile("|".join(("TO" + "DO", "FIX" + "ME", "HA" + "CK")))
MACHINE = re.compile(
    r"/(?:home|root|Users|work)/\w|/opt/(?!penstock)\w+/bin|https?://[\w.-]*(?:pypi|mirror|proxy)[\w.-]*"
)

CHECKS = ("assert", "raises", "fail", "check", "expect", "verify", "wait_for")
"""A call whose name begins so, or contains it as a word, is taken for an assertion."""


def test_files_are_short() -> None:
    none(
        f"{path}: {count} lines; at most {FILE_LINES_MAX}: which part of it can stand alone?"
        for path in python_files()
        if (count := len(text(path).splitlines())) > FILE_LINES_MAX
    )


def test_functions_are_short() -> None:
    none(
        f"{path}:{node.lineno}: {node.name} has {count} lines; at most {FUNCTION_LINES_MAX}"
        for path in python_files()
        for node in functions(path)
        if (count := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES_MAX
    )


def test_modules_say_what_they_are_for() -> None:
    none(
        f"{path}:1: no docstring; say what the module is for, and what it must not do"
        for path in python_files()
        if tree(path).body and ast.get_docstring(tree(path)) is None
    )


def test_public_classes_say_what_they_are() -> None:
    none(
        f"{path}:{node.lineno}: class {node.name} has no docstring"
        for path in python_files(*PACKAGES)
        for node in tree(path).body
        if isinstance(node, ast.ClassDef)
        and not node.name.startswith("_")
        and ast.get_docstring(node) is None
    )


def clock_reads(path: Path) -> Iterator[str]:
    """Imports of `time`, and calls such as datetime.now()."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module]
            if "time" in names:
                yield f"{path}:{node.lineno}: imports time; take a Clock of edge.clock, or a number"
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else node.value.attr
            if (owner, node.attr) in NOW:
                yield (
                    f"{path}:{node.lineno}: {owner}.{node.attr} reads the wall clock; "
                    "take a Clock, or a number"
                )


def test_only_the_clock_reads_the_clock() -> None:
    none(
        found for path in python_files(*PACKAGES) if path not in CLOCK_READERS for found in clock_reads(path)
    )


def test_nothing_is_left_unfinished() -> None:
    none(
        f"{path}:{number}: '{found[0]}'; do it, or open an issue"
        for path in committed()
        if path.suffix in TEXT_SUFFIXES
        for number, line in enumerate(text(path).splitlines(), 1)
        if (found := UNFINISHED.search(line))
    )


def test_no_machine_is_named() -> None:
    none(
        f"{path}:{number}: '{found[0]}' exists on one machine only"
        for path in committed()
        if path.suffix in TEXT_SUFFIXES
        for number, line in enumerate(text(path).splitlines(), 1)
        if (found := MACHINE.search(line))
    )


def asserts(function: ast.AST, helpers: frozenset[str]) -> bool:
    """Whether a function can fail on purpose: by a statement, or by calling something that checks."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert | ast.Raise):
            return True
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in helpers or any(word in CHECKS or name.startswith(CHECKS) for word in name.split("_")):
                return True
    return False


def checking_helpers() -> frozenset[str]:
    """Names of functions in tests that assert, directly or by another such helper."""
    found = [(node.name, node) for path in python_files("tests") for node in functions(path)]
    helpers: frozenset[str] = frozenset()
    while True:
        more = frozenset(
            name for name, node in found if not name.startswith("test_") and asserts(node, helpers)
        )
        if more <= helpers:
            return helpers
        helpers |= more


def test_every_test_can_fail() -> None:
    helpers = checking_helpers()
    none(
        f"{path}:{node.lineno}: {node.name} asserts nothing"
        for path in python_files("tests")
        if path.name.startswith("test_")
        for node in functions(path)
        if node.name.startswith("test_") and not asserts(node, helpers)
    )


def test_every_module_of_tests_is_collected() -> None:
    none(
        f"{path}: holds tests, but its name does not begin with test_"
        for path in python_files("tests")
        if not path.name.startswith("test_")
        for node in tree(path).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )


def test_the_commands_of_the_texts_exist() -> None:
    targets = set(re.findall(r"^([a-z][\w-]*):", text(Path("Makefile")), re.MULTILINE))
    pages = [path for path in committed() if path.suffix == ".md"]
    assert {Path("README.md"), Path("CONTRIBUTING.md")} <= set(pages)
    none(
        f"{path}: 'make {target}' is no target of the Makefile"
        for path in pages
        for target in re.findall(r"(?:^|`|\$ )make ([a-z][\w-]*)", text(path), re.MULTILINE)
        if target not in targets
    )


def test_links_of_the_texts_lead_somewhere() -> None:
    none(
        f"{path}: link to {target}, which does not exist"
        for path in committed()
        if path.suffix == ".md"
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text(path))
        if not (ROOT / path.parent / target).exists()
    )


def test_ci_runs_the_commands_of_the_readme() -> None:
    commands = re.findall(r"^make [\w-]+", text(Path(".ci/run")), re.MULTILINE)
    assert commands == ["make check", "make search", "make test"]
    assert set(commands) <= set(re.findall(r"^make [\w-]+", text(Path("CONTRIBUTING.md")), re.MULTILINE))
    assert "make test" in text(Path("README.md"))
