"""Parts of rule files and configurations in the manual are valid and raise no warning; options of its
commands exist."""

from __future__ import annotations

import argparse
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from edge.cli import COMMANDS, MODULES
from edge.commands.shared.rule_arguments import compile_files
from edge.config import Config, load
from tests.unit.explain.test_docs import blocks

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMED = [pytest.param(path, id=str(path.relative_to(ROOT))) for path in PAGES]

STREAMS = """streams:
  - CREATE STREAM plant
    (dev STRING, line STRING, part STRING, code STRING, state STRING, temp FLOAT, load FLOAT)
    WITH (DATASOURCE="plant/#")
  - CREATE STREAM temperature (dev STRING, temp FLOAT) WITH (DATASOURCE="temperature")
  - CREATE STREAM reading (dev STRING, site STRING) WITH (DATASOURCE="reading")
"""


def written(path: Path) -> list[Any]:
    """The parts of YAML files on a page."""
    return [yaml.load(text, yaml.CSafeLoader) for info, text in blocks(path) if info == "yaml"]


def is_configuration(part: Any) -> bool:
    return isinstance(part, dict) and part.keys() <= {
        field.alias or name for name, field in Config.model_fields.items()
    }


def as_rule_file(part: Any) -> Any:
    """A part of a rule file, with what a file needs beside it."""
    if isinstance(part, list):
        part = {"rules": part}
    elif "sql" in part:
        part = {"rules": {"part": part}}
    rules = part.get("rules", {})
    for rule in rules.values() if isinstance(rules, dict) else rules:
        if rule.get("scope") != "fleet":
            rule.setdefault("actions", [{"nop": {}}])
    return part


@pytest.mark.parametrize("path", NAMED)
def test_parts_of_files_are_valid(path: Path, tmp_path: Path) -> None:
    for number, part in enumerate(written(path)):
        file = tmp_path / f"{number}" / "part.yaml"
        file.parent.mkdir()
        if is_configuration(part):
            file.write_text(re.sub(r"\$\{file:\S+?\}", "secret", yaml.safe_dump(part)))
            load(file, environment={})
            continue
        file.write_text(yaml.safe_dump(as_rule_file(part)))
        (file.parent / "streams.yaml").write_text(STREAMS)
        _, problems = compile_files([file.parent], "UTC")
        assert not [problem.render() for problem in problems]


COMMAND = re.compile(r"(?:^|[ `/$])penstock ([a-z][a-z-]*)((?:[ ][^`#\n]*)?)", re.MULTILINE)


def command_lines(path: Path) -> Iterator[tuple[str, list[str]]]:
    """The commands of a page, in fences and in the text, each with the words behind it."""
    text = path.read_text("utf-8")
    for code in [
        *re.findall(r"^```.*\n((?:.*\n)*?)```$", text, re.MULTILINE),
        *re.findall(r"`[^`\n]+`", text),
    ]:
        for name, words in COMMAND.findall(code):
            if name in COMMANDS:
                yield name, re.split(r" \| | && |;|   ", words)[0].split()


def options(name: str, words: list[str]) -> set[str]:
    """The options of a command; of its verb if one is named, else of any."""
    parser = argparse.ArgumentParser(prog=name)
    importlib.import_module(f"edge.commands.{MODULES.get(name, name)}").add_arguments(parser)
    found = set(parser._option_string_actions)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            verbs = words[:1] if words and words[0].islower() and words[0][0] != "-" else action.choices
            for verb in verbs:
                found |= action.choices[verb]._option_string_actions.keys()
    return found


@pytest.mark.parametrize("path", NAMED)
def test_options_of_the_commands_shown_exist(path: Path) -> None:
    for name, words in command_lines(path):
        shown = {word.strip("[](),.'\"").partition("=")[0] for word in words if word.lstrip("[(")[:1] == "-"}
        assert shown - options(name, words) - {"-"} == set(), f"penstock {name} {words}"


def test_there_are_commands_and_parts() -> None:
    assert sum(len(written(path)) for path in PAGES) > 10
    assert sum(1 for path in PAGES for _ in command_lines(path)) > 100
