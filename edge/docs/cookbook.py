"""docs/cookbook: a page for each folder of rules/cookbook, made of its rule files.

A file begins with a comment: the title, then three sentences. The picture shows the first test of the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from edge.docs.markdown import FENCE
from edge.plugins.sink_kinds import register_sinks
from rules.compile import compile_rules
from rules.compiled import Compiled, CompiledRule
from rules.loader import load_paths
from rules.scenario import Test
from sql.catalog.topics import topic_parts, topic_values
from sql.explain.timelines.recording import record
from sql.explain.timelines.timeline_text import render_text
from sql.explain.tree import explain
from sql.record import Record

ROOT = Path(__file__).parents[2]

CHAPTERS = {
    "alarms": "Alarms: thresholds, silence, sequences",
    "measures": "Measures: rates, totals, filters",
    "windows": "Windows: averages, sessions, shifts, late data",
    "combine": "Several streams and tables",
    "payloads": "Payloads that are no plain JSON",
    "delivery": "Several gateways and the cloud",
}
"""Folders of rules/cookbook, in the order of the index."""

INTRODUCTION = """\
# Cookbook

Everyday tasks with machine data, each with a rule file. The files are in
`rules/cookbook`; `penstock test rules/cookbook/alarms` runs the tests in them, as those of this project
do. Copy a file, change the topic of its stream, and run `penstock check` on it.
"""


class Recipe(Record):
    """One rule file: its heading and sentences, its text without them, its picture."""

    title: str
    about: str
    text: str
    picture: str
    file: str

    @property
    def anchor(self) -> str:
        """The heading as a link to it."""
        return "".join(char for char in self.title.lower().replace(" ", "-") if char.isalnum() or char == "-")


def pages() -> dict[str, str]:
    """Every page of the cookbook by file name."""
    chapters = {folder: list(_recipes(ROOT / "rules" / "cookbook" / folder)) for folder in CHAPTERS}
    return {"index.md": _index(chapters)} | {
        f"{folder}.md": f"# {CHAPTERS[folder]}\n\n" + "\n".join(map(_section, recipes))
        for folder, recipes in chapters.items()
    }


def _index(chapters: dict[str, list[Recipe]]) -> str:
    lines = [INTRODUCTION]
    for folder, recipes in chapters.items():
        lines.append(f"\n## {CHAPTERS[folder]}\n")
        lines += [
            f"- [{recipe.title}]({folder}.md#{recipe.anchor}): {_first(recipe.about)}" for recipe in recipes
        ]
    return "\n".join(lines)


def _first(about: str) -> str:
    """The first sentence."""
    return about.split(". ", maxsplit=1)[0].rstrip(".") + "."


def _section(recipe: Recipe) -> str:
    return (
        f"## {recipe.title}\n\n{recipe.about}\n\n{FENCE}yaml file={recipe.file}\n{recipe.text}{FENCE}\n\n"
        f"{FENCE}text\n{recipe.picture.rstrip()}\n{FENCE}\n"
    )


def _recipes(folder: Path) -> Iterator[Recipe]:
    for path in sorted(folder.glob("*.yaml")):
        head, _, text = path.read_text("utf-8").partition("\n\n")
        title, *about = [line.removeprefix("#").strip() for line in head.splitlines()]
        sentences = " ".join(line for line in about if line)
        yield Recipe(title, sentences, text, _picture(path), path.name)


def _picture(path: Path) -> str:
    """The windows of the first tested rule over the events of its first test."""
    register_sinks()
    compiled = compile_rules(load_paths([path]))
    assert not [problem for problem in compiled.problems if problem.is_error], f"{path} has problems"
    loaded = next(test for file in compiled.loaded.files for test in file.tests)
    rule = compiled.rules[loaded.nested_in.id if loaded.nested_in else str(loaded.test.rule)]
    if rule.plan.relations:
        return explain(rule.plan)  # tables are no windows: nothing to draw
    drawn = record(rule.plan, compiled.catalog, list(_inputs(rule, compiled, loaded.test)))
    return render_text(drawn).partition("\n")[2]


def _inputs(
    rule: CompiledRule, compiled: Compiled, test: Test
) -> Iterator[tuple[int, str, dict[str, object]]]:
    now_ms = test.start
    for step in test.events:
        now_ms = step.at.since_epoch(test.start) if step.at is not None else now_ms + (step.advance or 0)
        stream = step.stream or rule.plan.streams[0]
        parts = topic_parts(compiled.catalog.streams[stream])
        named = topic_values(parts, str((step.meta or {}).get("topic", ""))) if parts else {}
        for row in step.send or ():
            yield now_ms, stream, {**row, **named}
