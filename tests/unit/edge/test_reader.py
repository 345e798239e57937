"""Rule files read in a child process."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from edge.config import Config
from edge.deploy.reading.reader import NotRead, RuleReader
from edge.deploy.reading.wire import dumped
from sql import Catalog, Engine, plan_rule, run_script

RULES = """
streams: ["CREATE STREAM m (temp FLOAT, at BIGINT) WITH (DATASOURCE='m')"]
tables: {seen: "CREATE TABLE seen (dev string primary key, temp double)"}
rules:
  - id: hot
    sql: SELECT avg(temp) AS a, upper('x') AS u FROM m GROUP BY TUMBLINGWINDOW(ss, 10)
    actions: [ACTION]
  - {id: later, triggered: false, sql: SELECT temp FROM m, actions: [log: {}]}
"""
REST = '{rest: {url: "http://h/", headers: {Authorization: "${env:PENSTOCK_TOKEN}"}}}'
PLAIN = RULES.replace("ACTION", "{log: {}}")


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    folder = tmp_path / "rules"
    folder.mkdir()
    return folder


@pytest.fixture
def reader(rules: Path) -> Iterator[RuleReader]:
    found = RuleReader(Config(), rules)
    yield found
    found.close()


def test_child_hands_back_what_reading_here_gives(
    rules: Path, reader: RuleReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_TOKEN", "Bearer of the token")
    (rules / "a.yaml").write_text(RULES.replace("ACTION", REST))
    there, here = reader.read(), reader.in_this_process().read()
    assert there.rules.keys() == here.rules.keys() == {"hot"}
    one, other = there.rules["hot"], here.rules["hot"]
    assert (one.plan, one.plan.fingerprint, one.path) == (other.plan, other.plan.fingerprint, other.path)
    assert one.actions == other.actions
    assert one.options == other.options
    assert one.plan.aggregates[0].definition is other.plan.aggregates[0].definition
    assert there.catalog.streams == here.catalog.streams
    assert there.tables == here.tables
    assert there.stopped == here.stopped == ("later",)
    assert (there.texts, there.paths, there.files) == (here.texts, here.paths, here.files)


def test_reading_again_sees_the_directory_as_it_is(rules: Path, reader: RuleReader) -> None:
    (rules / "a.yaml").write_text(PLAIN)
    good = reader.read()
    reader.close()
    (rules / "a.yaml").write_text(PLAIN.replace("avg(temp)", "avg(tmp)"))
    found = reader.read()
    assert found.rules["hot"].plan == good.rules["hot"].plan
    assert found.kept == {str(rules / "a.yaml")}
    assert [problem.code for problem in found.problems if problem.is_error] == ["B201"]
    assert reader.of(found.texts).rules["hot"].plan == good.rules["hot"].plan


def test_child_that_ends_is_replaced_at_the_next_reading(rules: Path, reader: RuleReader) -> None:
    (rules / "a.yaml").write_text(PLAIN)
    reader.start()
    assert reader._child is not None
    os.kill(reader._child._pid, signal.SIGKILL)
    with pytest.raises(NotRead, match="the reader of rule files ended"):
        reader.read()
    assert reader.read().rules.keys() == {"hot"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_child_answers_after_a_signal_to_all_processes(
    rules: Path, reader: RuleReader, number: signal.Signals
) -> None:
    """As a terminal and a service manager send it. The gateway, which starts, stops in order behind it."""
    (rules / "a.yaml").write_text(PLAIN)
    reader.read()
    assert reader._child is not None
    os.kill(reader._child._pid, number)
    assert reader.read().rules.keys() == {"hot"}


def test_a_child_for_which_there_are_no_descriptors_is_no_defect(rules: Path, reader: RuleReader) -> None:
    (rules / "a.yaml").write_text(PLAIN)
    bounds = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, bounds[1]))
    try:
        with pytest.raises(
            NotRead, match=r"the reader of rule files cannot be started: too many open files$"
        ):
            reader.read()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, bounds)
    assert reader.read().rules.keys() == {"hot"}


def test_directory_that_is_gone_changes_nothing(rules: Path, reader: RuleReader) -> None:
    (rules / "a.yaml").write_text(PLAIN)
    found = reader.read()
    (rules / "a.yaml").unlink()
    rules.rmdir()
    assert reader.is_missing
    assert reader.read() is found


def test_directory_that_cannot_be_read_changes_nothing(rules: Path, reader: RuleReader) -> None:
    (rules / "a.yaml").write_text(PLAIN)
    found = reader.read()
    rules.chmod(0)
    user = os.geteuid()
    os.seteuid(user or 65534)  # root may read everything
    try:
        assert reader.is_missing
        assert reader.read() is found
    finally:
        os.seteuid(user)
        rules.chmod(0o700)
    assert not reader.is_missing


FEW_NEED = (
    "sql.engine.statement.statement_instances",
    "sql.compiler.program",
    "sql.algebra.pattern",
    "sql.algebra.recognize",
    "sql.algebra.context",
    "sql.engine.context.host",
    "sql.engine.relations.declaring",
    "sql.engine.lookups.lookup_query",
    "cloud_sync.sink",
    "cloud_sync.archive",
    "sinks.builtin.mqtt",
)
"""Imported for the first rule that asks for it."""


@pytest.mark.long
def test_gateway_runs_without_the_parser_and_what_few_rules_need() -> None:
    """What `penstock run` imports: neither the parser nor the binder nor the readers of rule files, and no
    operators but those of filters and windows in GROUP BY."""
    heavy = (
        "sqlglot",
        "yaml",
        "sql.language",
        "sql.binder",
        "sql.explain.tree",
        "rules.loader",
        "rules.compile",
        *FEW_NEED,
    )
    code = (
        "import sys, edge.commands.run, edge.daemon, edge.intake.sources.mqtt.source\n"
        "import edge.deploy.reading.wanted, rules.read.reading\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    "sql",
    [
        "update istream m set xs[0] = 1",
        "SELECT unnest(xs) FROM m",
        "SELECT extract(s) FROM m",
        "SELECT dedup_trigger(v, v + 1, v, 10) FROM m",
        "SELECT to_json(*) AS r FROM m",
    ],
)
def test_plans_on_their_way_name_nothing_of_the_binder(sql: str) -> None:
    """The gateway would import the binder for such a plan."""
    engine = Engine(Catalog())
    run_script(engine, "CREATE STREAM m (v BIGINT, xs ARRAY(BIGINT), s STRUCT())", 0)
    assert b"sql.binder" not in dumped(plan_rule(sql, engine.catalog))


TABLE = 'tables: {seen: "CREATE TABLE seen (v bigint primary key, n count(*))"}'
CONTEXT = "contexts: {by_v: partition by v from m}"
KINDS = {
    "rowwise": ("SELECT v FROM m", ""),
    "sampled": ("SELECT count(*) AS n FROM m GROUP BY TUMBLINGWINDOW(ss, 10)", ""),
    "statement": ("select avg(v) as a from m#length(5)", ""),
    "stream query": ("from e in m within 10 select sum(e.v) as total", ""),
    "pattern": ("select a.v as v from pattern [every a=m(v > 3)]", ""),
    "trigger": ("on m(v = 1) delete from seen", TABLE),
    "table": ("into table seen select count(*) as n from m group by v", TABLE),
    "context": ("context by_v select count(*) as n from m", CONTEXT),
}
LOADED_IN_THE_LOOP = """
import os, sys
from pathlib import Path
import edge.daemon
from edge.config import Config
from edge.deploy.reading.reader import RuleReader
from rules.drive import make_table
from sql import Engine

for folder in map(Path, sys.argv[1:]):
    if child := os.fork():
        assert os.waitpid(child, 0)[1] == 0
        continue
    reader = RuleReader(Config(), folder)
    wanted = reader.read()
    reader.close()
    problems = [problem.render() for problem in wanted.problems if problem.is_error]
    wanted.prepare()
    before = set(sys.modules)
    engine = Engine(wanted.catalog)
    for name, table in wanted.tables.items():
        make_table(engine, name, table, 0)
    for rule in wanted.rules.values():
        engine.deploy(rule.id, rule.plan, 0)
    print(folder.name, len(wanted.rules), problems, sorted(sys.modules.keys() - before), flush=True)
    os._exit(0)
"""


@pytest.mark.long
def test_loop_imports_nothing_for_rules_that_were_prepared(tmp_path: Path) -> None:
    stream = "streams: [CREATE STREAM m (v BIGINT) WITH (DATASOURCE='m')]"
    for kind, (sql, beside) in KINDS.items():
        (tmp_path / kind).mkdir()
        rules = f"rules: [{{id: r, sql: '{sql}', actions: [nop: {{}}]}}]"
        (tmp_path / kind / "r.yaml").write_text(f"{stream}\n{beside}\n{rules}\n")
    folders = [str(tmp_path / kind) for kind in KINDS]
    command = [sys.executable, "-c", LOADED_IN_THE_LOOP, *folders]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"{kind} 1 [] []" for kind in KINDS]
