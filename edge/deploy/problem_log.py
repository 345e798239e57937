"""Problems of rule files in the log: each once, with the consequence for its rules, and the end of each."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable

from rules.problems import FileProblem

log = logging.getLogger("penstock.rules")


def log_changes(
    problems: Collection[FileProblem], before: Collection[FileProblem], running: Collection[str]
) -> None:
    """Log the problems that are not among those `before`, and the files that have no errors any more.

    `running`: the files whose rules run.
    """
    known = {problem.render() for problem in before}
    for problem in problems:
        text = problem.render()
        if text not in known:
            level = logging.ERROR if problem.is_error else logging.WARNING
            extra = {"file": problem.path, "problem": text, "note": _note(problem, running)}
            log.log(level, "rule_file.problem", extra=extra)

    for path in sorted(_wrong(before) - _wrong(problems)):
        log.info("rule_file.mended", extra={"file": path, "note": None if path in running else "it is gone"})


def _wrong(problems: Iterable[FileProblem]) -> set[str]:
    return {problem.path for problem in problems if problem.is_error}


def _note(problem: FileProblem, running: Collection[str]) -> str | None:
    """The consequence of an error for the rules of its file."""
    if not problem.is_error:
        return None
    if problem.path in running:
        return "the last good version goes on"
    return "none of its rules runs, for there is no good version of it"
