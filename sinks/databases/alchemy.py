"""Any other database, through SQLAlchemy and the database's driver (the `sql` extra)."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sinks.base import failure_of
from sinks.databases.base import Change, Denied, Refused, Unreachable
from sinks.databases.denials import remedy_of
from sinks.databases.time_limit import TimeLimit

DRIVERS = {"postgres": "postgresql+psycopg", "postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql"}
"""The default driver of an address that names only the database."""

MYSQL_OUTAGES = frozenset(
    (
        *(1021, 1037, 1038, 1041, 1114),  # no space on the disk, no memory
        *(1040, 1129, 1130, 1203, 1226),  # too many connections, a blocked host, a user's limits
        *(1042, 1043, 1158, 1159, 1160, 1161),  # the network
        *(1205, 1206, 1213),  # locks
        *(1053, 1077, 1317, 1927, 3168),  # a shutdown, a killed connection
        *(1969, 3024),  # the time limit of a statement
        *(1290, 1792, 1836),  # a server that only reads
    )
)
"""Errors of MySQL and MariaDB after which the same statement may succeed."""
MYSQL_PORT = 3306
MYSQL_CLIENT = range(2000, 3000)
"""Errors of its client: the server is away."""


AWAY = (
    re.compile(r'connection to server at "(?P<host>[^"]+)"[^,]*, port (?P<port>\d+) failed: (?P<why>.+)'),
    re.compile(r"Can't connect to MySQL server on '(?P<host>[^']+)' \((?P<why>.+)\)"),
)
"""How PostgreSQL's and MySQL's clients tell that a server cannot be reached."""


def _no_limits(seconds: float) -> dict[str, float]:
    return {}


LIMITS: Mapping[str, Callable[[float], dict[str, float]]] = {
    "psycopg": lambda seconds: {"connect_timeout": math.ceil(seconds)},
    "pymysql": lambda seconds: dict.fromkeys(("connect_timeout", "read_timeout", "write_timeout"), seconds),
}
"""By driver, its own parameters for a limit on how long it waits."""


class Alchemy:
    """A connection through SQLAlchemy; a batch is one transaction.

    A call ends after `timeout_ms` even if the server accepts the connection and never answers. Psycopg counts
    whole seconds while it connects, at least two.
    """

    def __init__(self, url: str, timeout_ms: int) -> None:
        scheme, _, rest = url.partition("://")
        self._url = f"{DRIVERS.get(scheme, scheme)}://{rest}"
        self._timeout_ms = timeout_ms
        self._limit = TimeLimit(timeout_ms)
        self._connection: Any = None

    def open(self) -> None:
        try:
            import sqlalchemy
        except ImportError:
            raise Denied("this needs SQLAlchemy: install penstock[sql]") from None
        try:
            with self._limit:
                self._connection = self._engine().connect()
        except (ImportError, sqlalchemy.exc.NoSuchModuleError) as error:
            raise Denied(f"the database's driver is missing: {error}; install it") from None
        except (ValueError, sqlalchemy.exc.ArgumentError) as error:
            raise Denied(f"its url is no address of a database: {error}") from None
        except sqlalchemy.exc.SQLAlchemyError as error:
            raise self._failure(error) from None

    def _engine(self) -> Any:
        import sqlalchemy

        url = sqlalchemy.make_url(self._url)
        limits = LIMITS.get(url.get_driver_name(), _no_limits)(self._timeout_ms / 1000)
        arguments = {name: value for name, value in limits.items() if name not in url.query}
        engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool, connect_args=arguments)
        sqlalchemy.event.listen(engine, "connect", self._connected)
        return engine

    def _connected(self, connection: object, _: object) -> None:
        """SQLAlchemy's first queries, which it makes after this call, are limited as well."""
        self._limit.connection = connection

    def find(self, table: str, wanted: Mapping[str, Any], rows_max: int) -> list[dict[str, Any]]:
        """The rows of a table whose columns have these values."""
        import sqlalchemy as sa

        schema, _, name = table.rpartition(".")
        source = sa.table(name, *map(sa.column, wanted), schema=schema or None)
        chosen = sa.and_(*(source.c[column] == value for column, value in wanted.items()))
        try:
            with self._limit, self._connection.begin():
                found = self._connection.execute(
                    sa.select(sa.text("*")).select_from(source).where(chosen).limit(rows_max)
                )
                return [dict(row) for row in found.mappings()]
        except sa.exc.DataError as error:
            raise Refused(self._reason(error)) from None
        except sa.exc.SQLAlchemyError as error:
            raise self._failure(error) from None

    def write(self, changes: Sequence[Change]) -> None:
        import sqlalchemy

        try:
            with self._limit, self._connection.begin():
                for statement, rows in _grouped(changes, self._connection.dialect.name):
                    self._connection.execute(statement, rows)
        except sqlalchemy.exc.DBAPIError as error:
            lost = error.connection_invalidated or isinstance(error, sqlalchemy.exc.InterfaceError)
            passing = lost or (isinstance(error, sqlalchemy.exc.OperationalError) and self._is_outage(error))
            raise (Unreachable if passing else Refused)(self._reason(error)) from None
        except sqlalchemy.exc.SQLAlchemyError as error:
            raise Refused(self._reason(error)) from None

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):  # a broken connection cannot be closed in order
                connection.close()

    def _is_outage(self, error: Exception) -> bool:
        """PyMySQL makes an OperationalError of every number that it does not know: a missing column too."""
        number = _number(error)
        return self._connection.dialect.name != "mysql" or number in MYSQL_OUTAGES or number in MYSQL_CLIENT

    def _failure(self, error: Exception) -> Unreachable:
        """`Denied` for an error that has a remedy here, else `Unreachable`."""
        reason, state = self._reason(error), getattr(error.__cause__, "sqlstate", None)
        remedy = remedy_of(reason, state, _number(error))
        return Denied(f"{reason}; {remedy}") if remedy else Unreachable(reason)

    def _reason(self, error: Exception) -> str:
        """The database's own error text, without the statement and its values."""
        if self._limit.has_ended_call:
            return f"no answer within {self._timeout_ms} ms"
        cause = error.__cause__ or error
        text = str(cause if _number(error) is None else cause.args[-1]).split("\n", 1)[0]
        away = next(filter(None, (pattern.search(text) for pattern in AWAY)), None)
        if away is None:
            return text
        import sqlalchemy

        found = away.groupdict()
        port = found.get("port") or sqlalchemy.make_url(self._url).port or MYSQL_PORT
        return failure_of(found["host"], port, OSError(found["why"]))


def _number(error: Exception) -> object:
    """The number of a MySQL error; None for those of other databases."""
    arguments = error.__cause__.args if error.__cause__ is not None else ()
    return arguments[0] if len(arguments) > 1 and isinstance(arguments[0], int) else None


def _grouped(changes: Sequence[Change], dialect: str) -> list[tuple[Any, list[dict[str, Any]]]]:
    """Statements with the rows they take, in order; neighbours of one kind, table and set of columns go
    together."""
    groups: list[tuple[Any, list[dict[str, Any]]]] = []
    before: tuple[Any, ...] = ()
    for change in changes:
        alike = (change.kind, change.table, tuple(change.row), change.keys)
        if alike != before:
            groups.append((_statement(change, dialect), []))
            before = alike
        groups[-1][1].append({_parameter(name): value for name, value in change.row.items()})
    return groups


def _parameter(name: str) -> str:
    """The name of a parameter; it is never the name of a column."""
    return "p_" + name.encode().hex()


def _statement(change: Change, dialect: str) -> Any:
    import sqlalchemy as sa

    columns: list[Any] = [sa.column(name) for name in change.row]
    table = sa.table(change.table, *columns)
    values: dict[str, Any] = {name: sa.bindparam(_parameter(name)) for name in change.row}
    others = {name: value for name, value in values.items() if name not in change.keys}
    chosen = sa.and_(True, *(table.c[key] == values[key] for key in change.keys))
    if change.kind == "delete":
        return sa.delete(table).where(chosen)
    if change.kind == "update":
        return sa.update(table).where(chosen).values(others)
    if change.kind == "insert":
        return sa.insert(table).values(values)
    return _upsert(dialect, table, change, values, others)


def _upsert(dialect: str, table: Any, change: Change, values: dict[str, Any], others: dict[str, Any]) -> Any:
    if dialect == "mysql":
        from sqlalchemy.dialects import mysql

        insert = mysql.insert(table).values(values)
        return insert.on_duplicate_key_update({name: insert.inserted[name] for name in (others or values)})
    if dialect != "postgresql":
        raise Refused(f"upsert is not known for {dialect}; use insert, update and delete")
    from sqlalchemy.dialects import postgresql

    found = postgresql.insert(table).values(values)
    if not others:
        return found.on_conflict_do_nothing(index_elements=list(change.keys))
    return found.on_conflict_do_update(
        index_elements=list(change.keys), set_={name: found.excluded[name] for name in others}
    )
