"""The grammar drawn: a page of the reference, and a picture for each of its sections."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from xml.sax.saxutils import escape

import railroad

from edge.docs.grammar import Choice, GrammarSection, Name, Part, Repeat, Several, Word, sections
from edge.docs.markdown import FENCE

LINE_WIDTH = 680
"""Pixels; a longer sequence goes on below."""

NAME_HEIGHT = 24
"""Pixels above each rule, for its name."""

STYLE = """
  text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace;
         fill: #1c2430 }
  g text { text-anchor: middle } .rule { font-weight: 600 }
  path { stroke: #66707d; stroke-width: 1.6; fill: none }
  rect { stroke: #3b74b9; stroke-width: 1.2; fill: #e9f1fb }
  .non-terminal rect { stroke: #8a6d3b; fill: #fbf4e6 } .page { stroke: none; fill: #ffffff }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6e9ee } path { stroke: #9aa4b1 } rect { stroke: #7fb2ee; fill: #22405f }
    .non-terminal rect { stroke: #d9b777; fill: #40351f } .page { fill: #14171c }
  }
"""

INTRODUCTION = """\
# Grammar

Every clause, drawn. What stands in a blue box is written so, in capitals or not;
a brown box is a rule of this page, or one of these:
`NAME` is letters, digits and `_`, or anything in backticks; `NUMBER`; `STRING`, in either quotes;
`UNIT`, of time, such as `sec` or `minutes`;
`GROUP_WINDOW` and `LOT_WINDOW`, a [window](windows.md) of GROUP BY or of stream queries;
`CRON_FIELD`, such as `*/5` or `8:17`. What the clauses do:
[semantics](../semantics.md), [windows](../windows.md), [patterns](../patterns.md),
[contexts](../contexts.md), [relations](../relations.md).
"""


def pages() -> dict[str, str]:
    """The page by its path below docs/reference."""
    return {"grammar.md": "\n".join([INTRODUCTION, *map(_written, sections())])}


def pictures() -> dict[str, str]:
    """The pictures by their paths below docs/."""
    return {_file(section): picture_of(section) for section in sections()}


def _written(section: GrammarSection) -> str:
    about = "".join(f"{line}\n" for line in section.about)
    rules = "\n".join(section.lines)
    picture = f"![{section.title}, drawn](../{_file(section)})"
    return f"\n## {section.title}\n\n{about}\n{picture}\n\n{FENCE}text\n{rules}\n{FENCE}\n"


def _file(section: GrammarSection) -> str:
    return f"images/grammar/{'-'.join(re.findall('[a-z]+', section.title.lower()))}.svg"


def picture_of(section: GrammarSection) -> str:
    """The rules of a section one below the other, as an SVG document."""
    shapes, y, width = [], 0.0, 0.0
    for name, part in section.rules.items():
        diagram = railroad.Diagram(_lines(part)).format(4)
        drawn = io.StringIO()
        diagram.writeSvg(drawn.write)
        shapes.append(f'<text class="rule" x="4" y="{y + NAME_HEIGHT - 6:g}">{escape(name)}</text>')
        shapes.append(drawn.getvalue().strip().replace("<svg ", f'<svg y="{y + NAME_HEIGHT:g}" ', 1))
        y += NAME_HEIGHT + float(diagram.attrs["height"])
        width = max(width, float(diagram.attrs["width"]))
    size = f'width="{width:g}" height="{y:g}" viewBox="0 0 {width:g} {y:g}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img"><title>{escape(section.title)}</title>'
    page = f'<rect class="page" width="{width:g}" height="{y:g}"/>'
    return "\n".join([head, f"<style>{STYLE}</style>", page, *shapes, "</svg>\n"])


def _item(part: Part) -> railroad.DiagramItem:
    match part:
        case Word(text):
            return railroad.Terminal(text)
        case Name(text):
            return railroad.NonTerminal(text)
        case Choice(parts):
            return railroad.Choice(0, *map(_item, parts))
        case Several():
            return railroad.Sequence(*_items(part))
        case Repeat(inner, "?"):
            return railroad.Optional(_item(inner))
        case Repeat(inner, "*"):
            return railroad.ZeroOrMore(_item(inner))
        case Repeat(inner):
            return railroad.OneOrMore(_item(inner))


def _lines(part: Part) -> railroad.DiagramItem:
    """A rule; a sequence stands on several lines where it is too long for one."""
    if not isinstance(part, Several):
        return _item(part)
    lines: list[list[railroad.DiagramItem]] = [[]]
    for item in _items(part):
        if lines[-1] and sum(other.width for other in lines[-1]) + item.width > LINE_WIDTH:
            lines.append([])
        lines[-1].append(item)
    rows = [railroad.Sequence(*line) for line in lines]
    return rows[0] if len(rows) == 1 else railroad.Stack(*rows)


def _items(part: Several) -> Iterator[railroad.DiagramItem]:
    """The parts of a sequence; `x ("," x)*` is a way back through the comma."""
    parts = list(part.parts)
    while parts:
        one = parts.pop(0)
        match parts:
            case [Repeat(Several((Word(sign), again)), "*"), *rest] if again == one:
                parts = rest
                yield railroad.OneOrMore(_item(one), railroad.Terminal(sign))
            case _:
                yield _item(one)
