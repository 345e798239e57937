"""The manual is true: every query, rule file, command, picture and table of values on its pages is run."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from edge.cli import main
from edge.docs.__main__ import main as write_reference
from sql import Catalog, Engine, SqlError, plan_rule, run_script
from sql.algebra.sample.windows.group_entry import GROUP_ENTRIES, GroupWindowEntry
from sql.algebra.windows.catalog import WINDOWS
from sql.algebra.windows.lots import LotPart, lot_parts
from sql.explain.timelines.recording import record
from sql.explain.timelines.svg import render_svg
from sql.explain.timelines.timeline_text import render_text
from tests.support.streams import catalog_of, define

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGES = [pytest.param(path, id=path.stem) for path in sorted(DOCS.glob("*.md"))]

STREAM = (
    "CREATE STREAM E (k STRING, v BIGINT, x FLOAT, y FLOAT, price FLOAT, volume BIGINT, "
    "ts BIGINT, run BOOLEAN) "
    'WITH (DATASOURCE="e"); CREATE STREAM values (v FLOAT) WITH (DATASOURCE="v"); '
    'CREATE STREAM sensors (id STRING, v FLOAT) WITH (DATASOURCE="s")'
)


def blocks(path: Path) -> list[tuple[str, str]]:
    """(info string, text) of the fenced blocks of a page."""
    return re.findall(r"^```(.*)\n((?:.*\n)*?)```$", path.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("path", PAGES)
def test_scripts_run(path: Path) -> None:
    for info, text in blocks(path):
        if info == "sql script":
            assert run_script(Engine(Catalog()), text, 0)


@pytest.mark.parametrize("path", PAGES)
def test_queries_can_be_planned(path: Path) -> None:
    catalog = Catalog()
    for info, text in blocks(path):
        if info != "sql":
            continue
        if text.lstrip().upper().startswith("CREATE"):
            define(catalog, text)
        else:
            plan_rule(text, catalog)


@pytest.mark.parametrize("path", PAGES)
def test_pictures_are_what_explain_draws(path: Path) -> None:
    sql = "\n;".join(text for info, text in blocks(path) if info == "sql" and text.startswith("CREATE"))
    catalog = catalog_of(sql) if sql else Catalog()
    query, events = "", ""
    for info, text in blocks(path):
        if info == "sql":
            query = text
        elif info == "jsonl":
            events = text
        elif info.startswith("timeline"):
            plan = plan_rule(query.strip(), catalog)
            rows = [json.loads(line) for line in events.splitlines()]
            inputs = [(row.pop("at"), plan.streams[0], row) for row in rows]
            start = re.search(r"start=(\d+)", info)
            start_ms = int(start[1]) if start else None
            assert render_text(record(plan, catalog, inputs, start_ms=start_ms)) == text
            if (image := re.search(r"svg=(\S+)", info)) is not None:
                drawn = render_svg(record(plan, catalog, inputs, start_ms=start_ms))
                assert drawn == (path.parent / image[1]).read_text(encoding="utf-8")


@pytest.mark.parametrize("path", PAGES)
def test_commands_print_what_the_page_shows(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for info, text in blocks(path):
        if (name := re.search(r"file=(\S+)", info)) is not None:
            (tmp_path / name[1]).write_text(text, encoding="utf-8")
        elif info == "console":
            command, _, expected = text.partition("\n")
            main(command.removeprefix("$ penstock ").split())
            printed = capsys.readouterr()
            assert (printed.out + printed.err).rstrip() == expected.rstrip()


def value_tables(path: Path) -> list[tuple[str, str]]:
    """(expression, result) of the tables that say what expressions give here."""
    found = []
    column = None
    for line in path.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if cells and cells[0] == "expression":
            column = cells.index("penstock") if "penstock" in cells else cells.index("result")
        elif not cells:
            column = None
        elif column is not None and not cells[0].startswith("---"):
            found.append((cells[0].strip("`").replace("\\|", "|"), cells[column]))
    return found


VALUES = [
    pytest.param(*pair, id=pair[0]) for path in sorted(DOCS.glob("*.md")) for pair in value_tables(path)
]


@pytest.mark.parametrize(("expression", "expected"), VALUES)
def test_tables_of_values(expression: str, expected: str) -> None:
    catalog = catalog_of(STREAM)
    text = f"SELECT {expression} AS x FROM E"
    if expected == "refused":
        with pytest.raises(SqlError):
            plan_rule(text, catalog)
        return
    engine = Engine(catalog)
    engine.deploy("r", plan_rule(text, catalog), 0)
    (emission,) = engine.push("E", [{}], 0)
    (row,) = emission.inserted
    value = row["x"]
    names = {"NULL": None, "TRUE": True, "FALSE": False}
    if expected in names:
        assert value is names[expected]
    elif isinstance(value, str):
        assert value == expected
    else:
        wanted = ast.literal_eval(expected)
        assert value == wanted and type(value) is type(wanted)


def test_there_are_tables_of_values() -> None:
    assert len(VALUES) > 20


@pytest.mark.long
def test_reference_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert write_reference(["--check", "--to", str(DOCS)]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("spec", [pytest.param(spec, id=spec.name) for spec in WINDOWS.values()])
def test_examples_of_windows_of_from(spec: object) -> None:
    example = getattr(spec, "example")  # noqa: B009 - specs of different kinds
    plan_rule(f"select * from {example}", catalog_of(STREAM.replace("v BIGINT", "v BIGINT, n BIGINT")))


@pytest.mark.parametrize("entry", GROUP_ENTRIES.values(), ids=lambda entry: entry.name)
def test_examples_of_windows_of_group_by(entry: GroupWindowEntry) -> None:
    plan = plan_rule(f"SELECT count(*) AS n FROM E GROUP BY {entry.example}", catalog_of(STREAM))
    assert plan.window is not None and plan.window.kind == entry.name


@pytest.mark.parametrize("part", lot_parts(), ids=lambda part: part.name)
def test_examples_of_stream_queries(part: LotPart) -> None:
    assert plan_rule(part.example, catalog_of(STREAM)).mode == "lots"


@pytest.mark.parametrize("path", PAGES)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target
