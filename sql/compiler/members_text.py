"""A subquery after IN, whose values are found by an index.

`x in (select id from Allowed)` needs no list of all values: the rows with `id = x` decide, and those whose
`id` is NULL where there are none. The rest of the subquery's condition is tested on the rows found.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from sql.algebra.event import Event
from sql.algebra.table.index import sought
from sql.algebra.table.searched import KeyIndex, RowStore
from sql.catalog.validation import CLASSES
from sql.codegen.functions import FunctionSet
from sql.codegen.members import IndexedColumn, Members
from sql.compiler.answer import AnswerText
from sql.compiler.shared_code import Answer
from sql.plan.bound import Read
from sql.plan.logical import SubqueryPlan
from sql.record import replace
from sql.types import Type


class MembersText:
    """Writes the functions of one subquery."""

    def __init__(self, part: SubqueryPlan, column: Read, store: RowStore, functions: FunctionSet) -> None:
        """`store`: one of those that the functions are made for."""
        assert column.column is not None
        self.names = (column.column,)
        self.classes = CLASSES[Type.NUMBER if column.type.is_numeric else column.type]
        self.values = AnswerText(part, store, functions, is_indexed=False)
        self.any_of = AnswerText(replace(part, kind="exists"), store, functions, is_indexed=False).answer

    def over(self, store: RowStore) -> Answer:
        """The values in one store, for an event; all of them where the store has no index."""
        index, values = store.by_key(self.names), self.values.over(store)
        if index is None:
            return values
        find = partial(rows_of, index)
        return partial(Members, IndexedColumn(self.classes, find, store.content, self.any_of, values))

    def ahead(self, store: RowStore) -> None:
        """Nothing is looked up for a batch: the value sought is that of an expression around."""


def rows_of(index: KeyIndex, value: object) -> Iterable[Event]:
    """The rows whose column equals a value; those with NULL for NULL."""
    found = index.find(None if value is None else sought(value))
    return () if found is None else found if isinstance(found, dict) else (found,)
