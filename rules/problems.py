"""Problems of a rule file and their text: file, line, column, code, sentence, source line, caret, hint.

    rules/pump.yaml:14:21: B201 unknown column 'tmp' in stream 'm'; it has dev, temp, ts
        SELECT dev, AVG(tmp) FROM m GROUP BY dev, TUMBLINGWINDOW(ss, 10)
                        ^^^
    hint: did you mean 'temp'?

Codes of this package are in `CODES`; those of the SQL inside a file keep the engine's own.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field

from sql.errors import Severity, Span
from sql.record import Record

CODES = {
    "R001": "the text is not YAML, or not JSON",
    "R002": "the file cannot be read: missing, no permission, not UTF-8, control characters",
    "R003": "the file is beyond a limit: bytes, depth or number of values",
    "R004": "the file holds more than one document",
    "R005": "an anchor, alias or merge key",
    "R006": "a key stands twice in one mapping",
    "R007": "a tag, directive or key that rule files do not use",
    "R008": "the file is empty",
    "R009": "a number that cannot be represented",
    "R101": "a key that does not exist here",
    "R102": "a key that is missing",
    "R103": "a value of the wrong type",
    "R104": "a value that is not allowed",
    "R105": "a sink that does not exist",
    "R106": "an id or name that is defined twice",
    "R107": "a form of rule that penstock does not run",
    "R108": "a secret that cannot be resolved",
    "R109": "a secret where none may stand",
    "R110": "a test that cannot be run",
    "R111": "an action that does not fit the query of its rule",
    "R112": "a check of a column that the query lacks, or of one that has no range",
    "R113": "a rule over the fleet whose events have no key, or with parts of a gateway's rule",
    "R201": "an eKuiper setting without effect here",
    "R202": "a number that YAML 1.1 read otherwise",
    "R203": "a column that no sample event has",
    "R204": "a window that never fills",
    "R205": "a condition that is always true",
    "R206": "a condition that is never true",
    "R207": "a rule whose state nothing bounds",
    "R208": "an aggregate that counts from the start of the rule and never resets",
    "R209": "a comparison with NULL, which is never true",
    "R210": "partitions of keys that never end",
    "R401": "a function file that cannot be read or run",
    "R402": "a function that rules cannot call: its types, its docstring or its name",
    "R403": "an example of a function gives something else",
    "R404": "a function without an example",
    "R405": "a schema file that cannot be used",
    "R301": "a test got other rows than expected",
    "R302": "a test missed a result",
    "R303": "a test got a result that is not written down",
}
"""Every code that this package raises. R0: the text, R1: the model, R2: notes, R3:
failed tests, R4: Python."""

SHOWN_MAX = 150
"""Characters of a source line that are shown around the caret."""

PROBLEMS_MAX = 500
"""Problems kept of one file; the first beyond them reports this, and the rest is dropped."""

_SECRET_KEY = (
    r"[\w-]{0,40}(?:passw(?:or)?d|passphrase|secret|token|api_?-?key|access_?-?key|authorization)[\w-]{0,40}"
)
_SECRET_NAME = re.compile(_SECRET_KEY, re.IGNORECASE)
_SECRET_VALUE = re.compile(
    rf"""(\b{_SECRET_KEY}["']?\s*:\s*)(?!["']?\$\{{)"""
    r"""("(?:[^"\\]|\\.)*"|'[^']*'|[^\s"'].*?(?=,\s*["']?[\w-]+["']?\s*:|[\s\]}]*$))""",
    re.IGNORECASE,
)
_AROUND = 10_000
"""Characters of a line, either side of the caret, that are searched for secrets before it is cut."""


def is_secret_name(key: object) -> bool:
    """True if a setting of this name holds a value that must not be shown, such as `password`."""
    return isinstance(key, str) and _SECRET_NAME.fullmatch(key) is not None


class FileProblem(Record):
    """One problem at a place of a file. `line` and `column` count from 1; 0 means the file as a whole.

    `source_line` is the shown part of the line, `caret` the column in it (from 1) under which the caret
    begins, and `length` how many columns it covers. `detail` is text printed unchanged between caret and
    hint.
    """

    path: str
    line: int
    column: int
    code: str
    message: str
    hint: str | None = None
    severity: Severity = "error"
    source_line: str = ""
    caret: int = 1
    length: int = 1
    detail: str = ""

    @property
    def is_error(self) -> bool:
        return self.severity == "error"

    def render(self) -> str:
        """The problem as text of a few lines, without a newline at the end."""
        place = f"{self.path}:{self.line}:{self.column}" if self.line else self.path
        warning = "" if self.is_error else "warning: "
        parts = [f"{place}: {self.code} {warning}{self.message}"]
        source = self.source_line
        if source.strip():
            before = source[: self.caret - 1]
            width = max(1, min(self.length, len(source.rstrip()) - self.caret + 1))
            blank = "".join("\t" if char == "\t" else " " for char in before)
            parts += [f"    {source.rstrip()}", f"    {blank}{'^' * width}"]
        if self.detail:
            parts += [f"    {line}" for line in self.detail.split("\n")]
        if self.hint:
            parts.append(f"hint: {self.hint}")
        return "\n".join(parts)


def in_order(problems: Iterable[FileProblem]) -> list[FileProblem]:
    """Sorted by file, then position, then code."""
    return sorted(problems, key=lambda item: (item.path, item.line, item.column, item.code))


def render_all(problems: Iterable[FileProblem]) -> str:
    """All problems by position, each as its own paragraph."""
    return "\n".join(problem.render() for problem in in_order(problems))


@dataclass(slots=True)
class FileText:
    """A file's text: converts offsets to lines and columns. `path` is the file's name in messages."""

    path: str
    text: str
    _starts: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self._starts = [0, *(match.end() for match in re.finditer(r"\r\n|\n|\r", self.text))]

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column, both from 1, of an offset into the text."""
        offset = max(0, min(offset, len(self.text)))
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The line of this number (from 1) without its end."""
        end = self._starts[number] if number < len(self._starts) else len(self.text)
        return self.text[self._starts[number - 1] : end].rstrip("\r\n")

    def problem(
        self,
        code: str,
        message: str,
        span: Span,
        hint: str | None = None,
        *,
        severity: Severity = "error",
        detail: str = "",
    ) -> FileProblem:
        """A problem at a range of offsets. A password in the line is hidden, a long line is cut."""
        line, column = self.position(span.start)
        source, caret = _excerpt(self.line(line), column)
        return FileProblem(self.path, line, column, code, message, hint, severity, source, caret,
                           max(1, span.end - span.start), detail)  # fmt: skip


def _excerpt(source: str, column: int) -> tuple[str, int]:
    """The shown part of a line, and the column of the caret in it."""
    first = max(0, column - 1 - _AROUND)
    whole = _hide(source[first : column - 1 + _AROUND])
    caret = min(len(_hide(source[first : column - 1])), len(whole))
    if len(whole) <= SHOWN_MAX:
        return whole, caret + 1
    start = max(0, min(caret - SHOWN_MAX // 2, len(whole) - SHOWN_MAX))
    head, tail = ("…" if start else ""), ("…" if start + SHOWN_MAX < len(whole) else "")
    return head + whole[start : start + SHOWN_MAX] + tail, caret - start + len(head) + 1


def _hide(source: str) -> str:
    return _SECRET_VALUE.sub(lambda match: match[1] + "***", source)


@dataclass(slots=True)
class Report:
    """The problems of one file, collected while it is read, at most `PROBLEMS_MAX` of them."""

    text: FileText
    found: list[FileProblem] = field(default_factory=list)

    def error(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        assert code in CODES, f"{code} is not in CODES"
        self._keep(code, message, span, hint, "error")

    def note(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        assert code in CODES, f"{code} is not in CODES"
        self._keep(code, message, span, hint, "warning")

    def _keep(self, code: str, message: str, span: Span, hint: str | None, severity: Severity) -> None:
        if len(self.found) < PROBLEMS_MAX:
            self.found.append(self.text.problem(code, message, span, hint, severity=severity))
        elif len(self.found) == PROBLEMS_MAX:
            message = f"the file has more than {PROBLEMS_MAX} problems; the rest is not shown"
            self.found.append(self.text.problem("R003", message, span))


_CODES = re.compile(r"\[Errno -?\d+\] |\[SSL: \w+\] | \(_ssl\.c:\d+\)")

TLS_REMEDIES = {
    "certificate has expired": "renew the certificate of the server; if it is in force, set the clock of "
    "this machine",
    "certificate is not yet valid": "set the clock of this machine, or use a certificate that is in force",
    "certificate verify failed": "name the authority that signed it (caFile, rootCaPath), and the server as "
    "it calls itself",
    "alert certificate required": "give the client a certificate (certFile and keyFile, or certificationPath "
    "and privateKeyPath)",
    "alert unknown ca": "the server does not know the authority of the client's certificate (certFile, "
    "certificationPath)",
    "alert certificate expired": "renew the client's certificate (certFile, certificationPath)",
}
"""What to do about a failure of TLS, by words of OpenSSL; the first that fits."""


def in_words(failure: BaseException, *, with_file: bool = True) -> str:
    """A failure of the system or the network without the number of the error, with the remedy where it has
    one; without the file where the sentence around it names that.

    >>> in_words(ConnectionRefusedError(111, "Connection refused")), in_words(TimeoutError())
    ('connection refused', 'TimeoutError')
    >>> in_words(PermissionError(13, "Permission denied", "a"), with_file=False)
    'permission denied'
    >>> in_words(OSError("certificate verify failed: it is not valid for 'b'. (_ssl.c:1006)")).split(";")[0]
    "certificate verify failed: it is not valid for 'b'"
    """
    text = str(failure)
    if not with_file and isinstance(failure, OSError) and failure.strerror:
        text = failure.strerror
    text = _CODES.sub("", text) or type(failure).__name__
    remedy = next((remedy for words, remedy in TLS_REMEDIES.items() if words in text), None)
    if remedy is not None and remedy not in text:
        text = f"{text.rstrip('.')}; {remedy}"
    return text[0].lower() + text[1:] if text.split()[0].istitle() else text
