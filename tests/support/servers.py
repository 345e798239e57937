"""Database servers for tests: started in a folder of their own, and skipped where the machine has none."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from tests.support.ports import free_port, listens
from tests.support.waiting import PATIENCE_S, wait_for

Database = TypeVar("Database", "Postgres", "MariaDb")


def _required(found: str | None, what: str) -> str:
    if found is None:
        pytest.skip(f"{what} is not installed")
    return found


@dataclass
class Redis:
    """A redis-server without persistence."""

    folder: Path
    password: str = ""
    port: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> Redis:
        program = _required(shutil.which("redis-server"), "redis-server")
        self.folder.mkdir(parents=True, exist_ok=True)
        more = ["--requirepass", self.password] if self.password else []
        words = [
            program,
            "--port",
            str(self.port),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
            *more,
        ]
        self._process = subprocess.Popen(
            words, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wait_for(lambda: listens(self.port), "start of redis-server")
        return self

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@dataclass
class Influx:
    """An InfluxDB 1 without accounts."""

    folder: Path
    port: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> Influx:
        program = _required(shutil.which("influxd"), "influxdb")
        self.folder.mkdir(parents=True, exist_ok=True)
        configuration = self.folder / "influxdb.conf"
        configuration.write_text(
            f"""
            reporting-disabled = true
            bind-address = "127.0.0.1:{free_port()}"
            [meta]
            dir = "{self.folder}/meta"
            [data]
            dir = "{self.folder}/data"
            wal-dir = "{self.folder}/wal"
            [http]
            bind-address = "127.0.0.1:{self.port}"
            """
        )
        self._process = subprocess.Popen(
            [program, "run", "-config", str(configuration)],
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_for(lambda: listens(self.port), "start of influxd")
        return self

    def ask(self, query: str, database: str = "") -> list[list[Any]]:
        """The rows of a statement of InfluxQL; instants in milliseconds."""
        words = urlencode({"q": query, "db": database, "epoch": "ms"}).encode()
        with urlopen(f"{self.url}/query", words, timeout=PATIENCE_S) as answer:
            series = json.load(answer)["results"][0].get("series", [])
        return [row for part in series for row in part["values"]]

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def _postgres_folder() -> Path | None:
    """Where the programs of the newest installed PostgreSQL lie; Debian has them outside of the path."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    found = shutil.which("initdb")
    return folders[-1] if folders else Path(found).parent if found else None


def postgres() -> AbstractContextManager[Postgres]:
    """A running PostgreSQL."""
    return _running(Postgres, "psycopg")


def mariadb() -> AbstractContextManager[MariaDb]:
    """A running MariaDB."""
    return _running(MariaDb, "pymysql")


@contextmanager
def _running(kind: Callable[[Path], Database], driver: str) -> Iterator[Database]:
    """A server that ends with the block; skips the test where something is missing."""
    pytest.importorskip(driver)
    pytest.importorskip("sqlalchemy")
    # Not below a folder of pytest: each start of another run closes that to the user of PostgreSQL.
    with tempfile.TemporaryDirectory(prefix="penstock-database-") as folder:
        server = kind(Path(folder))
        try:
            yield server.start()
        finally:
            server.stop()


@dataclass
class Postgres:
    """A PostgreSQL with the user `postgres` and no password."""

    folder: Path
    port: int = field(default_factory=free_port)
    _programs: Path | None = None

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> Postgres:
        programs = _postgres_folder()
        self._programs = Path(_required(None if programs is None else str(programs), "postgresql"))
        data = self.folder / "data"
        if not data.exists():
            if os.geteuid() == 0:  # PostgreSQL refuses to run as root
                shutil.chown(self.folder, "postgres")
            self._run("initdb", "-D", str(data), "-U", "postgres", "-A", "trust", "--no-sync")
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        self._run("pg_ctl", "-D", str(data), "-w", "-t", str(int(PATIENCE_S)), "-l", str(self.folder / "log"),
                  "-o", options, "start")  # fmt: skip
        return self

    def stop(self) -> None:
        if self._programs is not None:
            self._run("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "stop", check=False)

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """Stop all processes of the server while the block runs: the system still accepts connections, and
        nobody answers."""
        first = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        processes = [first, *map(int, children)]
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        try:
            yield
        finally:
            for process in processes:
                os.kill(process, signal.SIGCONT)

    def _run(self, program: str, *words: str, check: bool = True) -> None:
        assert self._programs is not None
        user = "postgres" if os.geteuid() == 0 else None
        done = subprocess.run(
            [str(self._programs / program), *words],
            user=user,
            group=user,
            capture_output=True,
            check=False,
            cwd=self.folder,
            env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8"},
            timeout=PATIENCE_S,
        )
        if check and done.returncode:
            pytest.fail(f"{program}: {done.stderr.decode(errors='replace')[-1000:]}")


@dataclass
class MariaDb:
    """A MariaDB, which speaks MySQL's protocol, with the database `plant`; `root` has no password."""

    folder: Path
    port: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"mysql://root@127.0.0.1:{self.port}/plant"

    def start(self) -> MariaDb:
        install = _required(shutil.which("mariadb-install-db"), "mariadb-server")
        server = _required(
            shutil.which("mariadbd", path=f"{os.environ.get('PATH')}:/usr/sbin"), "mariadb-server"
        )
        # Each server removes temporary tables of its folder that it does not know, also those of another one.
        temporary = {**os.environ, "TMPDIR": str(self.folder)}
        words = ["--no-defaults", f"--datadir={self.folder}/data"]
        if os.geteuid() == 0:
            words.append("--user=root")
        subprocess.run(
            [install, *words, "--auth-root-authentication-method=normal", "--skip-test-db"],
            check=True,
            capture_output=True,
            timeout=PATIENCE_S,
            env=temporary,
        )
        words += [f"--port={self.port}", "--bind-address=127.0.0.1", f"--socket={self.folder}/socket"]
        self._process = subprocess.Popen(
            [server, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=temporary
        )
        wait_for(lambda: listens(self.port), "start of mariadbd")
        self.ask("CREATE DATABASE plant", "")
        return self

    def ask(self, statement: str, database: str = "plant") -> Sequence[Sequence[Any]]:
        """The rows of a statement."""
        pymysql = pytest.importorskip("pymysql")
        session = pymysql.connect(
            host="127.0.0.1", port=self.port, user="root", database=database or None, autocommit=True
        )
        with session, session.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall()

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """Stop the server's process while the block runs: connections are accepted, and nobody answers."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
