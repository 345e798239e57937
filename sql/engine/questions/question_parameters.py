"""Parameters of questions on demand: `?` takes the next value of a list, `:name` that of a mapping.

A value never becomes text: what stands in it cannot change the question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sql.catalog.streams import Catalog, Variable
from sql.errors import Span, SqlError, did_you_mean
from sql.language.reading import parameters_of
from sql.types import type_of

Parameters = Sequence[Any] | Mapping[str, Any]
"""Values in the order of the question marks, or by name."""


def with_parameters(text: str, catalog: Catalog, values: Parameters) -> Catalog:
    """The catalog in which the parameters of a question have these values. Raises SqlError where they are not
    those that it has."""
    found = parameters_of(text)
    if isinstance(values, Mapping):
        names = {f":{name}": value for name, value in values.items()}
        for name in names.keys() - set(found):
            hint = did_you_mean(name, found)
            message = f"the question has no parameter '{name}'"
            raise SqlError.of("B560", message, Span(0, 1), hint, text=text)
    else:
        marks = [name for name in found if name.startswith("?")]
        if len(marks) != len(values):
            message = f"the question has {len(marks)} question marks, and {len(values)} values were given"
            raise SqlError.of("B560", message, Span(0, 1), "give one value for each", text=text)
        names = dict(zip(marks, values, strict=True))
    return catalog.within(
        {name: Variable(name, type_of(value), value, constant=True) for name, value in names.items()}
    )
