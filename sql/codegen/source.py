"""Write generated functions: lines with the SQL span they come from, compiled once per text, and known to
tracebacks.

User text never reaches the source but through `Names` (constants and bound values) and
`identifier` (names of columns).
"""

from __future__ import annotations

import hashlib
import linecache
import re
import weakref
from collections.abc import Sequence
from types import CodeType
from typing import Any

from sql.errors import NOWHERE, Span

_INDENT = "    "
_NOT_WORD = re.compile(r"\W", re.ASCII)


def identifier(name: str) -> str:
    """A piece of a Python identifier made from any text.

    >>> identifier("temp"), identifier("dev id"), identifier("größe")
    ('temp', 'dev_id', 'gr__e')
    """
    return _NOT_WORD.sub("_", name)


class SourceWriter:
    """The lines of one generated module, as they are written."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 0
        self.spans: dict[int, Span] = {}
        """Line number (from 1) to the expression written there."""

    def line(self, text: str, span: Span = NOWHERE) -> None:
        """One statement."""
        self._lines.append(_INDENT * self._depth + text if text else "")
        if span is not NOWHERE:
            self.spans[len(self._lines)] = span

    def block(self, header: str, span: Span = NOWHERE) -> Suite:
        """A compound statement: the lines written inside are its body, which is `pass` without any."""
        self.line(header, span)
        self._depth += 1
        return Suite(self, len(self._lines))

    def attempt(self, *failed: str, reads_error: bool = True) -> GuardedSuite:
        """Begin a `try` statement. `failed`: the lines of its handler, for a body that cannot be evaluated;
        `reads_error`: they read the local `error`."""
        self.block("try:")
        handler = "except DATA_ERRORS as error:" if reads_error else "except DATA_ERRORS:"
        return GuardedSuite(self, len(self._lines), handler, failed)

    def end(self, block: Suite) -> None:
        """End the innermost compound statement."""
        if len(self._lines) == block.first_line:
            self.line("pass")
        self._depth -= 1

    @property
    def line_count(self) -> int:
        """The number of lines so far."""
        return len(self._lines)

    @property
    def text(self) -> str:
        """The source so far."""
        return "\n".join(self._lines) + "\n"


class Suite:
    """The body of a compound statement as a context.
    A rule has about twenty: a class costs a third of a generator."""

    __slots__ = ("_writer", "first_line")

    def __init__(self, writer: SourceWriter, first_line: int) -> None:
        self._writer = writer
        self.first_line = first_line

    def __enter__(self) -> None:
        pass

    def __exit__(self, *raised: object) -> None:
        self._writer.end(self)


class GuardedSuite(Suite):
    """The body of a `try` statement as a context; its handler follows."""

    __slots__ = ("_failed", "_handler")

    def __init__(self, writer: SourceWriter, first_line: int, handler: str, failed: Sequence[str]) -> None:
        super().__init__(writer, first_line)
        self._handler = handler
        self._failed = failed

    def __exit__(self, *raised: object) -> None:
        self._writer.end(self)
        with self._writer.block(self._handler):
            for line in self._failed:
                self._writer.line(line)


class Generated:
    """The functions of one generated module, and the SQL spans of their lines."""

    def __init__(self, writer: SourceWriter, names: dict[str, Any]) -> None:
        self.text = writer.text
        self.spans = writer.spans
        self.file, code = compiled(self.text, self)
        self.functions: dict[str, Any] = dict(names)
        exec(code, self.functions)

    def __getitem__(self, name: str) -> Any:
        return self.functions[name]

    def line_of(self, error: BaseException) -> int | None:
        """The line of this module that raised the error."""
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self.file:
                return trace.tb_lineno
            trace = trace.tb_next
        return None


_compiled: dict[str, tuple[str, CodeType, int]] = {}
"""By text: pseudo file, code, and the number of its users."""


def compiled(text: str, user: object) -> tuple[str, CodeType]:
    """The pseudo file and the code of a text. Equal texts compile once, and tracebacks find them as long as
    one of their users is there."""
    known = _compiled.get(text)
    if known is None:
        file = f"<penstock {hashlib.sha256(text.encode()).hexdigest()[:12]}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        known = (file, compile(text, file, "exec"), 0)
    file, code, users = known
    _compiled[text] = (file, code, users + 1)
    weakref.finalize(user, _release, text)
    return file, code


def _release(text: str) -> None:
    file, code, users = _compiled[text]
    if users > 1:
        _compiled[text] = (file, code, users - 1)
        return
    del _compiled[text]
    linecache.cache.pop(file, None)
