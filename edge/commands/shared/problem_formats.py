"""Problems of rule files in the forms that machines read: JSON, and the annotations of GitHub Actions."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from rules.problems import FileProblem, render_all

_ESCAPES = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_IN_PROPERTIES = _ESCAPES | {":": "%3A", ",": "%2C"}


def as_json(problems: Sequence[FileProblem]) -> str:
    """One array; `line` and `column` count from 1, and are 0 where the file as a whole is meant."""
    return json.dumps(
        [
            {
                "file": problem.path,
                "line": problem.line,
                "column": problem.column,
                "end_column": problem.column + problem.length,
                "code": problem.code,
                "severity": problem.severity,
                "message": problem.message,
                "hint": problem.hint,
            }
            for problem in problems
        ],
        ensure_ascii=False,
        indent=1,
    )


def as_github(problems: Sequence[FileProblem]) -> str:
    """One command a line, which GitHub shows beside the line of the file."""
    return "\n".join(_command(problem) for problem in problems)


def _command(problem: FileProblem) -> str:
    places = {
        "file": problem.path,
        "line": problem.line or 1,
        "col": problem.column or 1,
        "title": problem.code,
    }
    shown = ",".join(f"{name}={_escaped(str(value), _IN_PROPERTIES)}" for name, value in places.items())
    text = problem.message + (f"\nhint: {problem.hint}" if problem.hint else "")
    return f"::{problem.severity} {shown}::{_escaped(text, _ESCAPES)}"


def _escaped(text: str, escapes: dict[str, str]) -> str:
    return "".join(escapes.get(char, char) for char in text)


FORMATS: dict[str, Callable[[Sequence[FileProblem]], str]] = {
    "text": render_all,
    "json": as_json,
    "github": as_github,
}
"""The printers of problems, by the value of `--format`."""
