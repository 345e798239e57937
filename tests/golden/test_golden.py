"""The compiled text of some rules is what was last read and found good."""

from __future__ import annotations

import builtins
import dis
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

import pytest

from sql.codegen.source import Generated, SourceWriter
from tests.golden.rules import RULES, compiled

FOLDER = Path(__file__).parent
LINES_MAX = 155


@pytest.mark.parametrize("name", RULES)
def test_text(name: str) -> None:
    expected = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    assert compiled(name) == expected, "python -m tests.golden writes it anew; read the difference"


def test_each_file_has_a_rule() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(RULES)


@pytest.mark.parametrize("name", RULES)
def test_it_is_short(name: str) -> None:
    assert len(compiled(name).splitlines()) <= LINES_MAX


def code_in(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from code_in(constant)


def globals_of(text: str) -> set[str]:
    """The names that the functions of a text read as globals."""
    return {
        instruction.argval
        for code in code_in(compile(text, "<rule>", "exec"))
        for instruction in dis.get_instructions(code)
        if instruction.opname == "LOAD_GLOBAL"
    }


def locals_of(text: str) -> set[str]:
    """The names that the functions of a text assign."""
    codes = code_in(compile(text, "<rule>", "exec"))
    return {name for code in codes if code.co_name != "<module>" for name in code.co_varnames}


@pytest.mark.parametrize("name", RULES)
def test_each_global_is_bound_and_none_is_hidden(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[Generated, set[str]]] = []
    first = Generated.__init__

    def noted(self: Generated, writer: SourceWriter, names: dict[str, object]) -> None:
        first(self, writer, names)
        made.append((self, set(names)))

    monkeypatch.setattr(Generated, "__init__", noted)
    compiled(name)
    assert made
    for generated, names in made:
        assert globals_of(generated.text) <= {*generated.functions, *vars(builtins)}
        # A loop over the cells of partitions has the partition of each in a local of this name.
        assert locals_of(generated.text) & names <= {"partition"}
