"""Go templates for eKuiper's rules, compiled once to Python functions.

Covered: text, `{{.field}}`, `{{.a.b}}`, `{{(index . 0).a}}`, variables (`{{$x := .a}}`, `{{$x = .b}}`),
`{{range}}` with `$index, $item :=`, `{{break}}` and `{{continue}}`, `{{if}}`, `{{with}}`, `{{else}}`,
`{{else if}}`, `{{end}}`, comments, trim markers, pipes, parentheses, literals and the functions of
`sinks.template.functions`. Everything else is an error with a position when the rule is loaded. Differences
from Go, both on purpose: a NULL or absent field prints `null` (Go: `<no value>`), and lists and objects print
as JSON (Go: `map[a:1]`), so that output stays JSON.
"""

from __future__ import annotations

from sinks.template.blocks import Parser
from sinks.template.expressions import INSTANT
from sinks.template.scan import TEMPLATE_CHARS_MAX, TemplateError

__all__ = ["TEMPLATE_CHARS_MAX", "Template", "TemplateError"]


class Template:
    """A compiled template; `render(data)` returns the text and is thread-safe.

    >>> Template("{{.dev}}: {{printf \\"%.1f\\" .temp}}").render({"dev": "a", "temp": 21.46})
    'a: 21.5'
    >>> Template("{{range $i, $row := .}}<{{$i}}:{{$row.n}}>{{else}}none{{end}}").render([{"n": 1}, {"n": 2}])
    '<0:1><1:2>'
    """

    __slots__ = ("_emit", "_unset", "text")

    def __init__(self, text: str) -> None:
        """Compile; raises `TemplateError`."""
        self.text = text
        parser = Parser(text)
        self._emit = parser.parse()
        self._unset: list[None] = [None] * (parser.scope.size - INSTANT - 1)

    def render(self, data: object, at_ms: int = 0) -> str:
        """Fill in `data` (the row, or the list of rows); `at_ms` is the value of `now`.

        Raises `sql.errors.DataError` if the data do not fit.
        """
        out: list[str] = []
        self._emit(data, [data, at_ms, *self._unset], out)
        return "".join(out)
