"""Take an instance apart when its partition ends.

Its parts refer to it, and only the garbage collector frees such circles. A gateway runs that seldom, so a
context whose keys come and go would need more memory with each key.
"""

from __future__ import annotations

from sql.engine.query import Running
from sql.engine.statement.running_statement import RunningStatement
from sql.engine.statement.subqueries import Subqueries, Uncorrelated


def release(instance: Running) -> None:
    """Take apart an instance whose partition has ended. No other object calls it afterwards."""
    if isinstance(instance, RunningStatement):
        if instance.sources.subqueries is not None:
            _release_all(instance.sources.subqueries)
        for matches in instance.sources.matches.values():
            matches.pattern.quit()
        vars(instance.output).clear()
    vars(instance).clear()


def _release_all(subqueries: Subqueries) -> None:
    for query in subqueries.queries:
        if isinstance(query, Uncorrelated):
            release(query.query)
        else:
            _release_all(query.inner)
            vars(query).clear()
    vars(subqueries).clear()
