"""The syntax tree: what a statement says, before names and types are known.

Every node carries the `Span` of the text it came from. Nodes are plain frozen data; they know neither sqlglot (which
only `sql.language` sees) nor the catalog. The three languages share one tree: an eKuiper window in GROUP BY, EPL
windows in FROM and the windows of stream queries are fields of the same `Select`.

Names keep the case they were written in; function, window and keyword names are lower case.
"""

from __future__ import annotations

from sql.syntax.expressions import (
    Between,
    Binary,
    Call,
    Case,
    Cast,
    Column,
    Constant,
    Expr,
    Field,
    In,
    Index,
    IsNull,
    Lambda,
    Like,
    Method,
    Ordering,
    Over,
    Period,
    PeriodPart,
    Slice,
    Star,
    Subquery,
    Unary,
    When,
)
from sql.syntax.node import Node
from sql.syntax.select import (
    Annotation,
    Assignment,
    CronField,
    GroupWindow,
    InsertInto,
    OutputLimit,
    Select,
    SelectItem,
    Statement,
    Terminated,
)
from sql.syntax.sources import Join, LotSource, Source, StreamSource, WindowCall
from sql.syntax.statements import (
    ColumnDefinition,
    ColumnType,
    CreateStream,
    CreateVariable,
    OnSet,
    Option,
    UpdateStream,
)

__all__ = [
    "Annotation",
    "Assignment",
    "Between",
    "Binary",
    "Call",
    "Case",
    "Cast",
    "Column",
    "ColumnDefinition",
    "ColumnType",
    "Constant",
    "CreateStream",
    "CreateVariable",
    "CronField",
    "Expr",
    "Field",
    "GroupWindow",
    "In",
    "Index",
    "InsertInto",
    "IsNull",
    "Join",
    "Lambda",
    "Like",
    "LotSource",
    "Method",
    "Node",
    "OnSet",
    "Option",
    "Ordering",
    "OutputLimit",
    "Over",
    "Period",
    "PeriodPart",
    "Select",
    "SelectItem",
    "Slice",
    "Source",
    "Star",
    "Statement",
    "StreamSource",
    "Subquery",
    "Terminated",
    "Unary",
    "UpdateStream",
    "When",
    "WindowCall",
]
