"""Results of inline tests as JUnit XML, which every build server shows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

if TYPE_CHECKING:
    from rules.inline import TestResult
    from rules.problems import FileProblem


def junit_xml(results: Sequence[TestResult], problems: Sequence[FileProblem]) -> str:
    """One suite for each rule file; the errors of files that could not be run are a suite of their own."""
    root = ElementTree.Element("testsuites", name="penstock")
    files = dict.fromkeys(result.path for result in results)
    for path in files:
        _suite(root, path, [result for result in results if result.path == path])
    if problems:
        suite = ElementTree.SubElement(
            root, "testsuite", name="check", tests=str(len(problems)), failures="0", errors=str(len(problems))
        )
        for problem in problems:
            case = _case(suite, problem.path, f"{problem.code} {problem.message}", problem.path, problem.line)
            ElementTree.SubElement(
                case, "error", message=_printable(problem.message), type=problem.code
            ).text = _printable(problem.render())
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def write_junit(path: Path, results: Sequence[TestResult], problems: Sequence[FileProblem]) -> None:
    """Write the file; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(junit_xml(results, problems), encoding="utf-8")


def _suite(root: ElementTree.Element, path: str, results: Sequence[TestResult]) -> None:
    failed = sum(not result.passed for result in results)
    suite = ElementTree.SubElement(
        root, "testsuite", name=_printable(path), tests=str(len(results)), failures=str(failed), errors="0"
    )
    for result in results:
        case = _case(suite, f"{path}.{result.rule}", result.name, path, result.line)
        for failure in result.failures:
            told = ElementTree.SubElement(
                case, "failure", message=_printable(failure.message), type=failure.code
            )
            told.text = _printable(failure.render())


def _case(suite: ElementTree.Element, classname: str, name: str, file: str, line: int) -> ElementTree.Element:
    return ElementTree.SubElement(
        suite, "testcase", classname=_printable(classname), name=_printable(name), file=file, line=str(line)
    )


def _printable(text: str) -> str:
    """Without the characters that XML cannot hold."""
    return "".join(char if char >= " " or char in "\t\n\r" else "�" for char in text if char not in "￾￿")
