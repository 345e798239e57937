"""The sources of FROM: streams with windows, the sources of stream queries, joins."""

from __future__ import annotations

from typing import Literal

from sql.syntax.expressions import Expr
from sql.syntax.node import Node
from sql.syntax.patterns import PatternClause, Recognize


class WindowCall(Node):
    """`#name(args)`, `#ns:name(args)`, `.ns:name(args)`. `retain` is 'union' or
    'intersection' on the source."""

    name: str
    args: tuple[Expr, ...] = ()
    namespace: str | None = None


class Source(Node):
    """Base of the sources of FROM. `name` is the stream, `alias` its name in the rest of the statement."""

    name: str
    alias: str


class StreamSource(Source):
    """`Stream(filter)#window#window [retain-union] [as alias] [unidirectional]`.

    With `pattern` the rows are its matches, and `name` is empty. `recognize` finds
    matches behind the windows.
    """

    filter: Expr | None = None
    windows: tuple[WindowCall, ...] = ()
    retain: Literal["union", "intersection"] | None = None
    unidirectional: bool = False
    pattern: PatternClause | None = None
    recognize: Recognize | None = None


class LotSource(Source):
    """A stream query's `item in [all] stream[(filters)] [partition by …] [within d [every p]] [retain n
    [every m]] [with unique k]`.

    `alias` is the item. `windows` are the words and the argument of each, e.g. `within` and its length.
    `every` belongs to the first of them: seconds after a length of time, else a count.
    """

    partition_by: tuple[Expr, ...] = ()
    windows: tuple[tuple[str, Expr | None], ...] = ()
    every: Expr | None = None
    unique: tuple[Expr, ...] = ()
    filter: Expr | None = None


class Join(Node):
    """A further source. `kind`: inner, left, right, full, cross; `on` None for cross
    and for EPL's comma join.

    A stream query's `on a equals b` arrives as `Binary('=', a, b)`.
    """

    kind: Literal["inner", "left", "right", "full", "cross"]
    source: Source
    on: Expr | None = None
