"""Problems of rule files in the log: each once, with the consequence for its rules, and the end of each."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable

from rules.problems import FileProblem

log = logging.getLogger("penstock.rules")


def log_changes(
    problems: Collection[FileProblem], before: Collection[FileProblem], used: Collection[str]
) -> None:
    """Log the problems that are not among those `before`, and the files that have no errors any more.

    `used`: the files of which a version is in use.
    """
    known = {problem.render() for problem in before}
    for problem in problems:
        text = problem.render()
        if text not in known:
            level = logging.ERROR if problem.is_error else logging.WARNING
            extra = {"file": problem.path, "problem": text, "note": _note(problem, used)}
            log.log(level, "rule_file.problem", extra=extra)

    for path in sorted(_wrong(before) - _wrong(problems)):
        log.info("rule_file.mended", extra={"file": path, "note": None if path in used else "it is gone"})


def _wrong(problems: Iterable[FileProblem]) -> set[str]:
    return {problem.path for problem in problems if problem.is_error}


def _note(problem: FileProblem, used: Collection[str]) -> str | None:
    """The consequence of an error for what its file defines."""
    if not problem.is_error:
        return None
    if problem.path in used:
        return "the last good version goes on"
    return "nothing of it is used, for there is no good version of it"
