"""The examples in the docstring of a function, run with doctest."""

from __future__ import annotations

import doctest
from types import FunctionType, ModuleType, TracebackType
from typing import NamedTuple


class Failed(NamedTuple):
    """An example with another result than the docstring says."""

    line: int
    call: str
    wanted: str
    got: str


def run_examples(
    function: FunctionType, module: ModuleType, path: str, first_line: int
) -> list[Failed] | None:
    """The examples that fail; None if there are none. `first_line` counts from 0."""
    text, names = function.__doc__ or "", dict(vars(module))
    parsed = doctest.DocTestParser().get_doctest(text, names, function.__name__, path, first_line)
    if not parsed.examples:
        return None
    runner = _Runner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(parsed, out=lambda _: None)
    return runner.failed


class _Runner(doctest.DocTestRunner):
    """A doctest runner that collects the failures."""

    def __init__(self, optionflags: int) -> None:
        super().__init__(verbose=False, optionflags=optionflags)
        self.failed: list[Failed] = []

    def report_failure(self, out: object, test: doctest.DocTest, example: doctest.Example, got: str) -> None:
        self._keep(test, example, got.strip() or "nothing")

    def report_unexpected_exception(
        self,
        out: object,
        test: doctest.DocTest,
        example: doctest.Example,
        exc_info: tuple[type[BaseException], BaseException, TracebackType],
    ) -> None:
        kind, error, _ = exc_info
        self._keep(test, example, f"{kind.__name__}: {error}")

    def _keep(self, test: doctest.DocTest, example: doctest.Example, got: str) -> None:
        line = (test.lineno or 0) + example.lineno + 1
        self.failed.append(Failed(line, example.source.strip(), example.want.strip() or "nothing", got))
