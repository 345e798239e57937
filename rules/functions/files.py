"""Python files beside the rules: every public function in them can be called by the rules.

    def dew_point(temperature: float, humidity: float) -> float | None: …

The examples of its docstring, as doctest writes them, are its tests; `penstock check` runs them
(`docs/extending.md`). Functions must give the same result for the same arguments, for a restart evaluates
events again. They run in the process of the gateway: write access to the rule directory is the right to run
code.
"""

from __future__ import annotations

import ast
import sys
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType

from rules.functions.signature import Unfit, function_of
from rules.functions.statements import first_script_line
from rules.problems import FileProblem, FileText, in_order
from rules.source.directory import function_files
from sql.aggregates import base as aggregates
from sql.binder.calls.call_binder import OVER_FUNCTIONS, SPREADS, WINDOW_FUNCTIONS
from sql.binder.calls.earlier_calls import ANALYTICS, PREVS
from sql.errors import Span
from sql.functions import registry

MODULE = "penstock_functions"
"""The package name of the modules of function files: `penstock_functions.<name of the file>`."""

SCRIPT = "a file beside the rules only defines functions; not run"
"""A warning: rules that call none of its functions are right without it."""

_KEYWORDS = frozenset(
    {*ANALYTICS, *OVER_FUNCTIONS, *PREVS, *SPREADS, *WINDOW_FUNCTIONS, "event_time", "meta", "mqtt"}
)


def load_functions(directories: Iterable[Path], *, examples: bool = False) -> list[FileProblem]:
    """Register the functions of the directories for rules, and forget all others; the problems of their
    files.

    `examples`: also run the examples of the docstrings. Never raises for the content of a file.
    """
    for known in registry.all_functions():
        if known.category == "user":
            registry.forget(known.name)
    files = dict.fromkeys(path for directory in directories for path in function_files(directory))
    return in_order(problem for path in files for problem in _load(path, examples=examples))


def _load(path: Path, *, examples: bool) -> Iterator[FileProblem]:
    try:
        text = FileText(str(path), path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        yield FileProblem(str(path), 0, 0, "R401", f"the file cannot be read: {error}")
        return
    module = ModuleType(f"{MODULE}.{path.stem}")
    module.__file__ = str(path)
    problem = _run(module, text)
    if problem is not None:
        yield problem
        return
    for function in _public(module):
        problem = _define(function, text)
        if problem is not None:
            yield problem
        elif examples:
            yield from _run_examples(function, module, text)


def _run(module: ModuleType, text: FileText) -> FileProblem | None:
    """Execute the definitions of a file; the problem found, if any. A script is not executed."""
    try:
        script_line = first_script_line(ast.parse(text.text))
        if script_line is not None:
            hint = 'put the work into a function, below `if __name__ == "__main__":`, or the script elsewhere'
            return _at(text, script_line, "R401", SCRIPT, hint, note=True)
        sys.modules[module.__name__] = module
        exec(compile(text.text, text.path, "exec"), module.__dict__)
    except SyntaxError as error:
        return _at(text, error.lineno or 1, "R401", f"this is no Python: {error.msg}")
    except (Exception, SystemExit) as error:  # noqa: BLE001  # a file that fails stops no other
        frames = reversed(traceback.extract_tb(error.__traceback__))
        line = next((frame.lineno for frame in frames if frame.filename == text.path), None)
        return _at(text, line or 1, "R401", f"the file raised {type(error).__name__}: {error}")
    return None


def _public(module: ModuleType) -> list[FunctionType]:
    """The functions that are written in the module itself, in order."""
    return [
        item
        for name, item in vars(module).items()
        if isinstance(item, FunctionType) and item.__module__ == module.__name__ and name[0] != "_"
    ]


def _define(function: FunctionType, text: FileText) -> FileProblem | None:
    line = function.__code__.co_firstlineno
    try:
        found = function_of(function, text.path)
    except Unfit as unfit:
        return _at(text, line, "R402", str(unfit), unfit.hint)
    taken = registry.lookup(found.name)
    if taken is not None or aggregates.lookup(found.name) is not None or found.name in _KEYWORDS:
        where = taken.origin if taken is not None and taken.origin else "SQL"
        return _at(
            text, line, "R402", f"the name {found.name}() is taken: {where} has it", "choose another name"
        )
    registry.define(found)
    return None


# --- examples -----------------------------------------------------------------------------------------------


def _run_examples(function: FunctionType, module: ModuleType, text: FileText) -> Iterator[FileProblem]:
    """The problems of a docstring's examples; a note if there are none."""
    first = _first_line(function, text)
    from rules.functions.examples import run_examples  # doctest imports the debugger

    failed = run_examples(function, module, text.path, first - 1)
    if failed is None:
        hint = f">>> {function.__name__}(…) in its docstring, and the result below it"
        yield _at(text, first, "R404", f"{function.__name__}() has no example", hint, note=True)
        return
    for line, source, wanted, got in failed:
        yield _at(text, line, "R403", f"{source} gives {got}, not {wanted}")


def _first_line(function: FunctionType, text: FileText) -> int:
    """The line on which the docstring begins."""
    for node in ast.walk(ast.parse(text.text)):
        if isinstance(node, ast.FunctionDef) and node.name == function.__name__ and node.body:
            return node.body[0].lineno
    return function.__code__.co_firstlineno


def _at(
    text: FileText, line: int, code: str, message: str, hint: str | None = None, *, note: bool = False
) -> FileProblem:
    written = text.line(line) if line <= text.text.count("\n") + 1 else ""
    start = sum(len(before) for before in text.text.splitlines(keepends=True)[: line - 1])
    indent = len(written) - len(written.lstrip())
    span = Span(start + indent, start + len(written))
    return text.problem(code, message, span, hint, severity="warning" if note else "error")
