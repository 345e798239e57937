"""The grammar that the manual draws reads the manual's queries, and no nonsense."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from sqlglot import Token, TokenType

import sql.functions  # noqa: F401 - fills the registry
from edge.docs.grammar import Choice, Name, Part, Repeat, Several, Word, sections
from sql.algebra.derived.analytic_catalog import ANALYTIC_FUNCTIONS
from sql.algebra.sample.windows.group_entry import GROUP_ENTRIES
from sql.algebra.windows.catalog import WINDOWS
from sql.functions.registry import all_functions
from sql.language.reading import tokens_of
from sql.language.tokens import NAME_TOKENS, UNITS
from sql.syntax.window_words import GROUP_WINDOWS, LOT_WINDOWS
from tests.scenarios.format import read
from tests.unit.explain.test_docs import blocks

ROOT = Path(__file__).parents[3]
RULES = {name: part for section in sections() for name, part in section.rules.items()}
DRAWN_ONLY = (TokenType.COMMA, TokenType.R_PAREN)


class Reader:
    """Where a part of the grammar may end that begins at a token: all the ends, each computed once."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._known: dict[tuple[int, int], frozenset[int]] = {}

    def ends(self, part: Part, at: int) -> frozenset[int]:
        key = id(part), at
        if key not in self._known:
            self._known[key] = frozenset(self._ends(part, at))
        return self._known[key]

    def _ends(self, part: Part, at: int) -> Iterator[int]:
        match part:
            case Word(text):
                if at < len(self._tokens) and self._is_word(self._tokens[at], text):
                    yield at + 1
            case Name(text) if text.isupper():
                yield from self._token(text, at)
            case Name(text):
                yield from self.ends(RULES[text], at)
            case Choice(parts):
                for one in parts:
                    yield from self.ends(one, at)
            case Several(parts):
                found = {at}
                for one in parts:
                    found = {end for start in found for end in self.ends(one, start)}
                yield from found
            case Repeat(inner, "?"):
                yield at
                yield from self.ends(inner, at)
            case Repeat(inner, sign):
                found = {at} if sign == "*" else set[int]()
                new = {at}
                while new:
                    new = {end for start in new for end in self.ends(inner, start)} - found
                    found |= new
                yield from found

    def _is_word(self, token: Token, text: str) -> bool:
        return token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER) and token.text.upper() == text

    def _token(self, kind: str, at: int) -> Iterator[int]:
        here = self._tokens[at : at + 3]
        types, word = [token.token_type for token in here], here[0].text.lower() if here else ""
        if kind == "CRON_FIELD":
            yield from self._cron_field(at)
        elif kind == "LOT_WINDOW":
            for words in LOT_WINDOWS:
                if [token.text.lower() for token in here[: len(words.split())]] == words.split():
                    yield at + len(words.split())
        elif kind == "NUMBER" and (types[:2] == [TokenType.DOT, TokenType.NUMBER] or self._has_suffix(here)):
            yield at + 2
        elif (
            types
            and {
                "NAME": types[0] in NAME_TOKENS,
                "NUMBER": types[0] is TokenType.NUMBER,
                "STRING": types[0] is TokenType.STRING,
                "UNIT": word in UNITS,
                "GROUP_WINDOW": word in GROUP_WINDOWS,
            }[kind]
        ):
            yield at + 1

    def _has_suffix(self, here: list[Token]) -> bool:
        """Whether a number ends in a letter, such as `5L`; the tokenizer cuts it in two."""
        if len(here) < 2 or here[0].token_type is not TokenType.NUMBER:
            return False
        return here[1].start == here[0].end + 1 and here[1].text.lower() in ("l", "f", "d")

    def _cron_field(self, at: int) -> Iterator[int]:
        """All up to a comma or parenthesis."""
        end = at
        while end < len(self._tokens) and self._tokens[end].token_type not in DRAWN_ONLY:
            end += 1
        if end > at:
            yield end


def reads(text: str, rule: str = "statements") -> bool:
    tokens = tokens_of(text)
    return len(tokens) in Reader(tokens).ends(RULES[rule], 0)


def queries(path: Path) -> Iterator[str]:
    """The queries of a page of the manual or of a rule file."""
    if path.suffix == ".md":
        yield from (text for info, text in blocks(path) if info in ("sql", "sql script"))
    else:
        written = yaml.load(path.read_text("utf-8"), yaml.CSafeLoader)
        yield from (rule["sql"] for rule in written.get("rules", [written]) if "sql" in rule)


def statements(path: Path) -> Iterator[str]:
    """What a scenario deploys and what is not refused."""
    for setup in read(path).setup:
        if setup.kind in ("rule", "script") and setup.refused is None:
            yield setup.text


FILES = [
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "rules" / "cookbook").rglob("*.yaml")),
    *sorted((ROOT / "rules" / "examples").rglob("*.yaml")),
]


@pytest.mark.long
def test_it_reads_the_queries_of_the_manual() -> None:
    found = [(path.name, text) for path in FILES for text in queries(path)]
    assert len(found) > 60
    assert [(name, text) for name, text in found if not reads(text)] == []


@pytest.mark.long
def test_it_reads_the_examples_of_the_scenarios() -> None:
    files = sorted((ROOT / "tests" / "scenarios").rglob("*.scenario"))
    texts = [text for path in files for text in statements(path)]
    assert len(texts) > 100
    assert [text for text in texts if not reads(text)] == []


@pytest.mark.long
def test_it_reads_the_examples_of_the_reference() -> None:
    calls = [text for item in all_functions() for text, _ in item.examples]
    calls += [example.call for item in ANALYTIC_FUNCTIONS for example in item.examples]
    assert [text for text in calls if not reads(text, "expression")] == []
    assert [item.example for item in GROUP_ENTRIES.values() if not reads(item.example, "group_window")] == []
    assert [item.example for item in WINDOWS.values() if not reads(item.example, "source")] == []


@pytest.mark.parametrize(
    "text",
    [
        "SELECT FROM m",
        "SELECT a FROM m GROUP BY a WHERE b > 1",
        "SELECT a, FROM m",
        "SELECT a b c FROM m",
        "SELECT a FROM m WHERE a >",
        "CREATE STREAM m (a BIGINT WITH (DATASOURCE='x')",
        "SELECT a FROM m ORDER a",
        "select a from pattern [every a=m -> ]",
        "from m select a",
    ],
)
def test_it_reads_no_nonsense(text: str) -> None:
    assert not reads(text)


def test_every_rule_is_reached_and_defined() -> None:
    used = {"statements"} | {name.text for part in RULES.values() for name in names(part)}
    assert {name for name in used if not name.isupper()} == set(RULES)


def names(part: Part) -> Iterator[Name]:
    match part:
        case Name():
            yield part
        case Choice(parts) | Several(parts):
            for one in parts:
                yield from names(one)
        case Repeat(inner):
            yield from names(inner)
        case Word():
            pass
