"""The text of a scenario: streams and rules, then what arrives when and what each rule emits.

    # A hopping window counts an event in every window that covers it.
    stream m (dev STRING, temp FLOAT)

    rule hot
        SELECT dev, count(*) AS n FROM m GROUP BY dev, HOPPINGWINDOW(ss, 10, 5)

    at 1s   m dev=a temp=21.5
    at 5s
        + dev=a n=1
    restart
    at 10s
        + dev=a n=1

| line | means |
|---|---|
| `# text` | a comment; the first one says what the scenario shows |
| `stream S (columns) [WITH (…)]` | CREATE STREAM; `schema E(columns)` is `create schema` |
| `option name value` | an option of the rules that follow: any field of RuleOptions |
| `rule NAME`, then indented SQL | deployed at the first step; `script` deploys several statements |
| `error CODE LINE:COLUMN`, then SQL | a statement that is refused for one error, with the place in that SQL |
| `at TIME` | time goes on to TIME through every due instant; `at TIME once` fires what is due once, at TIME |
| `at TIME STREAM a=1 b=x` | time goes on, then an event arrives |
| `at TIME flush`, `at TIME set V=1` | the source ends; a variable changes |
| `at TIME read RULE` | the content is read |
| `restart` | the state is stored as JSON and restored into a new engine |
| indented `+ row`, `- row`, `= row` | a row of the insert stream, of the remove stream, of the content |
| indented `late row`, `error row` | an event that came too late, that could not be evaluated |
| indented `rows 0` | an emission without rows |

With several rules an output line begins with the rule's name. `@10s` before the sign says that the output
belongs to another instant than the line's, as in event time. Output that is not written down is a failure.
TIME is a duration since the start (`90s`, `1500ms`, `2h`) or a date (`2026-03-29T01:30`), in UTC. A value is
a number, `true`, `false`, `NULL`, a word, or JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Row = dict[str, Any]

UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
SIGNS = ("+", "-", "=", "late", "error", "rows")
PLAIN_WORD = re.compile(r"[A-Za-z_][\w.:/-]*")
WORDS = {"true": True, "false": False, "NULL": None, "NaN": float("nan"), "Infinity": float("inf")}


class FormatError(Exception):
    """A line that cannot be read; the message begins with its place."""


@dataclass(frozen=True)
class Output:
    """A line of output: which rule, what kind, the row, and the instant it belongs to."""

    rule: str
    sign: str
    row: Row
    at_ms: int


@dataclass
class Step:
    """What happens at an instant, and the lines of output under it."""

    line: int
    action: str
    at_ms: int = 0
    name: str = ""
    row: Row = field(default_factory=dict)
    once: bool = False
    expected: list[Output] = field(default_factory=list)


@dataclass(frozen=True)
class Setup:
    """A declaration, a rule or a script; `refused` is (code, line, column) of a
    statement that must not run."""

    kind: str
    text: str
    name: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    refused: tuple[str, int, int] | None = None


@dataclass
class Scenario:
    """One file."""

    path: Path
    lines: list[str]
    setup: list[Setup] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    @property
    def rules(self) -> list[str]:
        return [item.name for item in self.setup if item.kind == "rule"]


def read(path: Path) -> Scenario:
    """The scenario of a file. Raises FormatError with the line that cannot be read."""
    return read_text(path, path.read_text(encoding="utf-8"))


def read_text(path: Path, text: str) -> Scenario:
    """The scenario of a text that stands in a file. Raises FormatError with the line that cannot be read."""
    scenario = Scenario(path, text.splitlines())
    numbered = [
        (number, line) for number, line in enumerate(scenario.lines, 1) if not line.lstrip().startswith("#")
    ]
    options: dict[str, Any] = {}
    position = 0
    while position < len(numbered):
        number, line = numbered[position]
        position += 1
        block = [text for _, text in _indented(numbered, position)]
        position += len(block)
        try:
            if line.split(" ")[0] in ("at", "restart"):
                scenario.steps.append(_step(number, line, block, scenario))
            elif line.strip():
                _declare(scenario, options, line, block)
        except (ValueError, KeyError) as error:
            raise FormatError(f"{path}:{number}: {error}: {line}") from error
    return scenario


def _indented(numbered: list[tuple[int, str]], position: int) -> Iterator[tuple[int, str]]:
    for number, line in numbered[position:]:
        if not line.startswith(" "):
            return
        yield number, line


def _declare(scenario: Scenario, options: dict[str, Any], line: str, block: list[str]) -> None:
    word, _, rest = line.partition(" ")
    text = "\n".join(item.strip() for item in block)
    match word:
        case "stream":
            scenario.setup.append(
                Setup("script", f"CREATE STREAM {rest}" + ("" if " WITH " in rest else " WITH ()"))
            )
        case "schema":
            scenario.setup.append(Setup("script", f"create schema {rest}"))
        case "option":
            name, _, value = rest.partition(" ")
            options[name] = duration(value) if name.endswith("_ms") else read_value(value)
        case "rule" | "script":
            scenario.setup.append(Setup(word, text, rest.strip(), dict(options)))
        case "error":
            code, place, *_ = rest.split(" ")
            row, column = map(int, place.split(":"))
            scenario.setup.append(Setup("error", text, options=dict(options), refused=(code, row, column)))
        case _:
            raise ValueError("unknown word")


def _step(number: int, line: str, block: list[str], scenario: Scenario) -> Step:
    words = list(split(line))
    if words == ["restart"]:
        return Step(number, "restart")
    step = Step(number, "advance", instant(words[1]))
    match words[2:]:
        case []:
            pass
        case ["once"]:
            step.once = True
        case ["flush"]:
            step.action = "flush"
        case ["set", assignment]:
            step.action, step.row = "set", read_row([assignment])
        case ["read", name]:
            step.action, step.name = "read", name
        case [name, *columns]:
            step.action, step.name, step.row = "push", name, read_row(columns)
    step.expected = [_output(item, scenario, step.at_ms) for item in block if item.strip()]
    return step


def _output(line: str, scenario: Scenario, at_ms: int) -> Output:
    words = list(split(line))
    is_named = words[0] not in SIGNS and not words[0].startswith("@")
    rule = words.pop(0) if is_named else scenario.rules[-1]
    if words[0].startswith("@"):
        at_ms = instant(words.pop(0)[1:])
    sign = words.pop(0)
    return Output(rule, sign, {} if sign == "rows" else read_row(words), at_ms)


def split(line: str) -> Iterator[str]:
    """The words of a line; spaces inside quotes, brackets and braces do not end one."""
    word, depth, quoted = "", 0, False
    for character in line.strip() + " ":
        if character == " " and depth == 0 and not quoted:
            if word:
                yield word
            word = ""
            continue
        quoted ^= character == '"'
        depth += 0 if quoted else (character in "[{") - (character in "]}")
        word += character


def read_row(words: list[str]) -> Row:
    """The row of words such as `dev=a`."""
    row = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise ValueError(f"expected name=value, got '{word}'")
        row[name.strip('"')] = read_value(value)
    return row


def read_value(text: str) -> Any:
    """A word, or JSON."""
    if text in WORDS:
        return WORDS[text]
    return text if PLAIN_WORD.fullmatch(text) else json.loads(text)


def show_row(row: Row) -> str:
    """The words of a row, as `read_row` takes them."""
    return " ".join(f"{_shown_name(name)}={show_value(value)}" for name, value in row.items())


def _shown_name(name: str) -> str:
    return f'"{name}"' if set(name) & set(' "=[{') else name


def show_value(value: Any) -> str:
    """A value as it stands in a scenario."""
    if isinstance(value, str) and PLAIN_WORD.fullmatch(value) and value not in WORDS:
        return value
    return "NULL" if value is None else json.dumps(value, ensure_ascii=False)


def duration(text: str) -> int:
    """Milliseconds of `90s` and the like."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", text)
    if found is None:
        raise ValueError(f"'{text}' is no duration")
    return round(float(found[1]) * UNITS[found[2]])


def instant(text: str) -> int:
    """Milliseconds since the epoch of a duration since it, or of a date in UTC."""
    if "-" not in text:
        return duration(text)
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def show_instant(at_ms: int) -> str:
    """An instant as it stands in a scenario."""
    if at_ms >= 10 * UNITS["d"]:
        return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="auto").removesuffix("+00:00")
    return f"{at_ms // 1000}s" if at_ms % 1000 == 0 else f"{at_ms}ms"
