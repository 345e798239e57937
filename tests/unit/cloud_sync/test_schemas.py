"""Schema files: they say what the columns mean,
and are in the bucket before the first file that names them."""

from __future__ import annotations

import gzip
import hashlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from cloud_sync.records import Record
from cloud_sync.schemas import (
    BadSchema,
    Check,
    Column,
    Key,
    Schema,
    SchemaFile,
    read_schema,
    schema_file,
    versions,
)
from cloud_sync.spool import Spool
from cloud_sync.spool.state import SCHEMAS_MAX
from cloud_sync.uploader import Uploader
from tests.unit.cloud_sync.support import DATE, NOW_MS, MemoryTarget
from tests.unit.cloud_sync.test_declaration import settings

BASE = Schema("hot", "0" * 16, ("1m",), "UTC", False, (Key("dev", "string"),), (Column("n", "count", "int"),))


def row(number: int, schema: SchemaFile | None) -> Record:
    return Record("hot", DATE, b'{"n":%d}' % number, schema)


def uploaded(spool: Spool, target: MemoryTarget, *rows: Record) -> None:
    spool.append(rows, NOW_MS)
    spool.commit(NOW_MS)
    Uploader(spool, target).drain(NOW_MS)


def test_a_schema_says_what_follows_from_the_select() -> None:
    found = settings(
        "SELECT dev, note, n, count(temp) AS c, sum(temp) AS s, avg(temp) AS mean, "
        "percentile_cont(temp, 0.9) AS p, kll_sketch(temp) AS k, window_start() AS began FROM plant "
        "GROUP BY dev, note, n, TUMBLINGWINDOW(ss, 10)",
        "{window: [1m, 1d], zone: Europe/Berlin, hashed: [note], hashKey: 0123456789abcdef}",
    )
    file = found.schema_file
    assert file is not None
    assert read_schema(file.content) == Schema(
        rule="r",
        rule_hash=found.rule_hash,
        windows=("1m", "1d"),
        zone="Europe/Berlin",
        restates=False,
        keys=(Key("dev", "string"), Key("note", "string", "hashed"), Key("n", "bigint")),
        values=(
            Column("c", "count", "int"),
            Column("s", "sum", "float"),
            Column("mean", "avg", "float"),
            Column("p", "percentile", "float", "k", 0.9),
            Column("k", "kll", "sketch"),
        ),
    )
    assert file.id == hashlib.sha256(file.content).hexdigest()[:16]
    assert file.name == f"v2-schemas/rule=r/{found.rule_hash}-{file.id}.json"


def test_schemas_come_before_the_files_that_name_them(tmp_path: Path) -> None:
    one, two = schema_file(BASE), schema_file(BASE._replace(rule_hash="1" * 16))
    target = MemoryTarget()
    with closing(Spool(tmp_path / "spool.db", "gw1")) as spool:
        uploaded(spool, target, row(1, one), row(2, two), row(3, one))
        uploaded(spool, target, row(4, one))
    names = list(target.files)
    assert sum(name.startswith("v2-schemas/") for name in names) == 2
    found = {}
    for name in names:
        if name.startswith("v2-arrivals/"):
            told = json.loads(target.files[name])
            schema = f"v2-schemas/rule=hot/{told['rule_hash']}-{told['schema']}.json"
            assert names.index(schema) < names.index(told["name"]) < names.index(name)
            lines = gzip.decompress(target.files[told["name"]]).splitlines()
            found[told["name"].rpartition("/")[2].rpartition("-")[0]] = (
                told["schema"],
                [json.loads(line)["n"] for line in lines],
            )
    assert found == {"1-3": (one.id, [1, 3]), "2-2": (two.id, [2]), "4-4": (one.id, [4])}


def test_a_crash_leaves_the_schema_in_the_spool(tmp_path: Path) -> None:
    file, target = schema_file(BASE), MemoryTarget()
    with closing(Spool(tmp_path / "spool.db", "gw1")) as spool:
        spool.append([row(1, file)], NOW_MS)
        spool.commit(NOW_MS)
    with closing(Spool(tmp_path / "spool.db", "gw1")) as again:
        uploaded(again, target, row(2, file))
        assert again.stats().rows == 0
    assert target.files[file.name] == file.content


def test_rows_whose_schema_is_damaged_are_set_aside_until_it_is_back(tmp_path: Path) -> None:
    file, target = schema_file(BASE), MemoryTarget()
    path = tmp_path / "spool.db"
    with closing(Spool(path, "gw1")) as spool:
        spool.append([row(1, file)], NOW_MS)
        spool.commit(NOW_MS)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE state SET body = x'00' WHERE key LIKE 'schema:%'")
    with closing(Spool(path, "gw1")) as spool:
        Uploader(spool, target).drain(NOW_MS)
        assert (spool.stats().set_aside, list(target.files)) == (1, [])
        uploaded(spool, target, row(2, file))
        spool.restore_set_aside()
        Uploader(spool, target).drain(NOW_MS)
        assert spool.stats().rows == 0 and file.name in target.files


@pytest.mark.long
def test_schemas_that_no_row_names_are_deleted_at_the_bound(tmp_path: Path) -> None:
    files = [schema_file(BASE._replace(rule_hash=f"{number:016x}")) for number in range(SCHEMAS_MAX + 1)]
    with closing(Spool(tmp_path / "spool.db", "gw1")) as spool:
        spool.append([row(1, files[0])], NOW_MS)
        spool.commit(NOW_MS)
        uploaded(spool, MemoryTarget(), *(row(2, file) for file in files[1:-1]))
        assert len(spool.state("schema:")) == SCHEMAS_MAX
        spool.append([row(3, files[1]), row(4, files[-1])], NOW_MS)
        spool.commit(NOW_MS)
        assert spool.state("schema:").keys() == {f"schema:{files[1].key}", f"schema:{files[-1].key}"}
        target = MemoryTarget()
        uploaded(spool, target, row(5, files[2]))
        assert files[2].name in target.files


def test_a_spool_of_version_1_is_brought_up_to_date(tmp_path: Path) -> None:
    path, target = tmp_path / "spool.db", MemoryTarget()
    with closing(Spool(path, "gw1")) as spool:
        spool.append([row(1, None)], NOW_MS)
        spool.commit(NOW_MS)
    with closing(sqlite3.connect(path)) as db, db:
        for table in ("rows", "set_aside", "files"):
            db.execute(f"ALTER TABLE {table} DROP COLUMN schema")
        db.execute("PRAGMA user_version=1")
    with closing(Spool(path, "gw1")) as spool:
        uploaded(spool, target, row(2, schema_file(BASE)))
    manifests = sorted(name for name in target.files if name.startswith("v2-arrivals/"))
    assert ["schema" in json.loads(target.files[name]) for name in manifests] == [False, True]


def test_additions_evolve_a_table_and_other_changes_begin_another() -> None:
    more = BASE._replace(rule_hash="1" * 16, values=(*BASE.values, Column("t", "sum", "float")))
    fewer = BASE._replace(windows=("1m", "1d"), values=(Column("t", "sum", "float"),))
    other_type = BASE._replace(values=(Column("t", "sum", "int"),))
    other_keys = BASE._replace(keys=(*BASE.keys, Key("line", "bigint")))
    hidden = BASE._replace(keys=(Key("dev", "string", "hashed"),))
    other_zone = BASE._replace(zone="Europe/Berlin")
    listed = [BASE, more, other_type, other_keys, fewer, hidden, other_zone, BASE]
    assert versions(listed) == [1, 1, 2, 3, 1, 4, 5, 1]


def test_what_a_schema_holds_survives_its_file() -> None:
    checks = (
        Check("n", "quarantine", 0.0, 5.5),
        Check("dev", "warn", not_null=True),
        Check(None, "fail", freshness_ms=60_000),
    )
    schema = BASE._replace(
        expect=checks, secret=("owner",), values=(Column("p", "percentile", "float", "k", 0.0),)
    )
    assert read_schema(schema_file(schema).content) == schema


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b"[" * 100_000,
        b"\xff",
        schema_file(BASE).content.replace(b'"version":2', b'"version":3'),
        schema_file(BASE).content.replace(b'"UTC"', b"7"),
        schema_file(BASE._replace(expect=(Check("n", "warn", 1.0),))).content.replace(b'"warn"', b'"stop"'),
        schema_file(BASE._replace(expect=(Check("n", "warn", 1.0),))).content.replace(b"1.0", b"NaN"),
        schema_file(BASE._replace(expect=(Check(None, "warn", freshness_ms=7),))).content.replace(
            b":7", b":-7"
        ),
        schema_file(BASE._replace(keys=(Key("n", "bigint"),))).content,
        b" " * (1 << 21),
    ],
)
def test_other_content_is_no_schema(content: bytes) -> None:
    with pytest.raises(BadSchema):
        read_schema(content)
