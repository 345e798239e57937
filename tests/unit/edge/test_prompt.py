"""`penstock sql`: what each statement answers, over recorded data and over live streams."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from pathlib import Path

import pytest

from edge.commands.prompt.gateway import GatewaySession
from edge.commands.prompt.session import CommandRefused, PromptSession, answer
from edge.commands.prompt.tables import PromptTables
from edge.commands.sql import split
from rules.compile import compile_rules
from rules.loader import load_text, unite
from sql import Catalog, parse
from sql.catalog.stream_text import declaration
from sql.syntax import CreateStream
from tests.support.waiting import PATIENCE_S

DDL = """CREATE STREAM m (dev STRING, v FLOAT DEFAULT 1.5, w STRUCT(a ARRAY(BIGINT), b BOOLEAN))
         WITH (DATASOURCE="m/+")"""
ROOT = Path(__file__).parents[3]

EVENTS = [
    (1000, "m", {"dev": "a", "v": 1}),
    (1500, "m", {"dev": "b", "v": 2}),
    (2500, "m", {"dev": "a", "v": 5}),
]


@pytest.fixture
def session() -> PromptSession:
    return PromptSession(data=lambda: EVENTS)


def told(session: PromptSession, *texts: str) -> list[str]:
    lines: list[str] = []
    for text in texts:
        answer(session, text, lines.append)
    return lines


TABLES = """
streams: {m: CREATE STREAM m () WITH (DATASOURCE="m")}
tables:
  totals: create table totals (dev string primary key, n count(*), top maxever(double))
  latest: create window latest#unique(dev) as (dev string, v double)
rules:
  count: {sql: "into table totals select count(*) as n, maxever(v) as top from m group by dev"}
  keep: {sql: "insert into latest select dev, v from high"}
  choose: {sql: "insert into high select dev, v from m where v > 1"}
"""


def test_tables_hold_what_the_rules_of_the_files_write() -> None:
    compiled = compile_rules(unite([load_text(TABLES, "f.yaml")]))
    session = PromptSession(compiled.catalog.copied(), lambda: EVENTS, tables=PromptTables(compiled))
    session.printed = lambda emission: json.dumps(emission.inserted)
    session.parameters = ()
    assert told(
        session,
        "SELECT dev, n, top FROM totals ORDER BY dev",
        "SELECT m.dev AS dev, t.n AS n FROM m unidirectional, totals AS t WHERE t.dev = m.dev",
        "SELECT dev, v FROM latest ORDER BY v",
        "UPDATE latest SET v = 9.5 WHERE dev = 'b'",
        "DELETE FROM totals",
        "SELECT max(v) AS most FROM latest",
        "SELECT * FROM totals",
        "SELECT v FROM high",
        "DESCRIBE TABLE totals",
    ) == [
        '{"dev": "a", "n": 2, "top": 5}',
        '{"dev": "b", "n": 1, "top": 2}',
        '[{"dev": "a", "n": 1}]',
        '[{"dev": "b", "n": 1}]',
        '[{"dev": "a", "n": 2}]',
        '{"dev": "b", "v": 2}',
        '{"dev": "a", "v": 5}',
        '{"dev": "b", "v": 9.5}',
        "done",
        '{"most": 9.5}',
        "no rows",
        '[{"v": 2}]',
        '[{"v": 5}]',
        "dev  string",
        "n  bigint",
        "top  float",
    ]


def test_tables_of_the_prompt_are_written_by_its_statements(session: PromptSession) -> None:
    assert told(
        session,
        "CREATE STREAM m (dev STRING, v FLOAT) WITH ()",
        "create table last (dev string primary key, v double)",
        "describe table last",
        "on m as e merge last as l where l.dev = e.dev when matched then update set v = e.v "
        "when not matched then insert select e.dev as dev, e.v as v",
        "select dev, v from last order by dev",
        "insert into last values ('c', 7.0)",
        "select count(*) as n from last",
        "drop table last",
        "select * from last",
    )[:-1] == [
        "stream m is declared",
        "table last is declared",
        "dev  string",
        "v  double",
        "the statement writes from now on",
        '{"dev": "a", "v": 5}',
        '{"dev": "b", "v": 2}',
        "done",
        '{"n": 3}',
        "table last is dropped",
    ]


def test_questions_need_recorded_data() -> None:
    session = PromptSession()
    (_, refused) = told(session, "create table t (k string primary key)", "select * from t")
    assert refused.startswith("there are no events: name a file with --recorded")


def test_questions_take_parameters_and_call_declared_expressions(session: PromptSession) -> None:
    told(session, "CREATE STREAM m (dev STRING, v FLOAT) WITH ()")
    session.printed = lambda emission: json.dumps(emission.inserted)
    session.parameters = ["a", 2]
    assert told(session, "SELECT v FROM m WHERE dev = ? AND v > ?") == ['[{"v": 5}]']
    (refused,) = told(session, "SELECT v FROM m WHERE v > ?")
    assert "B560 the question has 1 question marks, and 2 values were given" in refused
    session.parameters = {"low": 4}
    declared, line = told(
        session,
        "CREATE EXPRESSION above { (x, least) => x.v > least }",
        "SELECT dev FROM m WHERE above(m, :low)",
    )
    assert (declared, line) == ("expression above is declared", '[{"dev": "a"}]')


def test_streams_are_declared_listed_described_and_dropped(session: PromptSession) -> None:
    assert told(
        session, DDL, "show streams", "DESCRIBE STREAM m;", "SHOW TABLES", "DROP STREAM m", "SHOW STREAMS"
    ) == [
        "stream m is declared",
        "m",
        "dev  string",
        "v  float",
        "w  struct(a array(bigint), b boolean)",
        "DATASOURCE: m/+",
        "no tables are declared",
        "stream m is dropped",
        "no streams are declared",
    ]


def test_a_question_runs_over_the_data_each_time_anew(session: PromptSession) -> None:
    total = "SELECT sum(v) AS s FROM m GROUP BY TUMBLINGWINDOW(ss, 1)"
    told(session, DDL)
    session.printed = lambda emission: str(emission.inserted)
    for _ in range(2):
        assert told(session, total) == ["[{'s': 3}]", "[{'s': 5}]"]
    assert told(session, "SELECT v FROM m WHERE v > 100") == ["no output"]


def test_a_query_is_explained(session: PromptSession) -> None:
    lines = told(
        session,
        DDL,
        "EXPLAIN SELECT avg(v) AS a FROM m GROUP BY HOPPINGWINDOW(ss, 10, 5)",
        "EXPLAIN STREAM m",
    )
    assert any("HOPPINGWINDOW" in line for line in lines)
    assert lines[-1].startswith("CREATE STREAM m (dev string, v float DEFAULT 1.5, ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("DROP STREAM mm", "there is no stream 'mm': did you mean 'm'?"),
        ("SHOW me", "SHOW STREAMS and SHOW TABLES"),
        ("DROP m", "write DROP STREAM name"),
        ("SELECT x FROM m", "B201 unknown column 'x'"),
        ("DESCRIBE TABLE m", "there is no table 'm'"),
        ("SELEC 1", "P010"),
        (".tabels", "there is no command '.tabels'; did you mean '.tables'?"),
        (".schema", "there is no command '.schema'; there are .tables, .help, .quit"),
    ],
)
def test_what_is_wrong_is_said(session: PromptSession, text: str, said: str) -> None:
    assert said in "\n".join(told(session, DDL, text)[1:])


def test_a_declaration_can_be_read_again() -> None:
    catalog = Catalog()
    (statement,) = parse(DDL)
    assert isinstance(statement, CreateStream)
    stream = catalog.define(statement)
    (again,) = parse(declaration(stream))
    assert isinstance(again, CreateStream)
    assert Catalog().define(again) == stream


def test_statements_end_at_semicolons_outside_quotes_and_comments() -> None:
    assert split("a ';' b; c -- ;\n d; /* ; */ `;`;") == ["a ';' b", "c -- ;\n d", "/* ; */ `;`"]


def penstock(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    run = [sys.executable, "-m", "edge.cli", "sql", *words]
    return subprocess.run(run, input=stdin, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


@pytest.mark.long
def test_the_command_over_recorded_data(tmp_path: Path) -> None:
    data = tmp_path / "m.jsonl"
    data.write_text("".join(json.dumps({"at": at_ms, **row}) + "\n" for at_ms, _, row in EVENTS))
    done = penstock("--recorded", f"m={data}", stdin="SELECT dev,\n v FROM m WHERE v > 1;\nSHOW STREAMS")
    assert done.stdout.splitlines() == [
        '{"at": 1500, "rows": [{"dev": "b", "v": 2}]}',
        '{"at": 2500, "rows": [{"dev": "a", "v": 5}]}',
        "m",
    ]
    assert done.returncode == 0
    assert penstock("--recorded", f"m={data}", "--execute", "SELECT nosuch(v) FROM m").returncode == 1


@pytest.mark.long
def test_the_command_over_a_live_stream() -> None:
    text = """CREATE STREAM sim () WITH (TYPE="simulator", DATASOURCE="x",
                                         EXTRA='{"data": [{"n": 7}], "interval": 50}');
              SELECT n + 1 AS m FROM sim"""
    done = penstock("--for", "2s", "--execute", text)
    assert done.stdout.splitlines()[:3] == ["stream sim is declared", '[{"m":8}]', '[{"m":8}]']
    assert done.returncode == 0


@pytest.mark.long
def test_help_and_quit_may_have_a_point() -> None:
    done = penstock(stdin=".help\n.quit\nSELECT nosuch\n")
    assert done.stdout.startswith("CREATE STREAM") and done.returncode == 0
    assert done.stderr == "" and "nosuch" not in done.stdout


def test_over_a_gateway_commands_with_a_point_are_known_and_a_token_is_asked_for() -> None:
    session = GatewaySession(lambda path: (401, "this needs the header\n"))
    with pytest.raises(CommandRefused, match=r"no command '\.table'; did you mean '\.tables'"):
        list(session.run(".table"))
    with pytest.raises(CommandRefused, match="needs the header; give --config or --data"):
        list(session.run("select * from T"))


@pytest.mark.parametrize(
    "text", ["show streams", "describe stream m", "describe table T select a", "drop table T"]
)
def test_over_a_gateway_commands_of_the_other_prompt_are_refused_with_those_there_are(text: str) -> None:
    def never(path: str) -> tuple[int, str]:
        raise AssertionError(f"{path} was asked for")

    with pytest.raises(CommandRefused, match="DESCRIBE TABLE name, SELECT"):
        list(GatewaySession(never).run(text))


@pytest.mark.long
def test_the_tab_key_completes_words_streams_and_columns(tmp_path: Path) -> None:
    (tmp_path / "m.sql").write_text("CREATE STREAM machines (dev STRING, width FLOAT) WITH ()", "utf-8")
    (tmp_path / "m.jsonl").write_text('{"at_ms": 1, "dev": "a", "width": 2.5}\n', "utf-8")
    master, slave = pty.openpty()
    command = [
        sys.executable,
        "-m",
        "edge.cli",
        "sql",
        "m.sql",
        "--recorded",
        "machines=m.jsonl",
        "--time-column",
    ]
    environment = {**os.environ, "TERM": "dumb", "PYTHONPATH": str(ROOT)}
    child = subprocess.Popen(
        [*command, "at_ms"], stdin=slave, stdout=slave, stderr=slave, env=environment, cwd=tmp_path
    )
    os.close(slave)
    try:
        shown(master, b"penstock> ")
        os.write(master, b"SEL\t m.wi\t * 2 AS twice FROM mach\t AS m;\n")
        shown(master, b'"twice": 5.0')
        os.write(master, b".ta\t\n")
        shown(master, b"no tables are declared")
        os.write(master, b"quit\n")
        assert child.wait(PATIENCE_S) == 0
    finally:
        child.kill()
        child.wait()
        os.close(master)


def shown(terminal: int, text: bytes) -> None:
    """Read until the terminal has shown the text."""
    seen = b""
    while text not in seen:
        assert select.select([terminal], [], [], PATIENCE_S)[0], seen
        seen += os.read(terminal, 65_536)
