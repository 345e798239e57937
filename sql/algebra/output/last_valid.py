"""A parameter of an output limit whose variables may get values that it cannot have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from sql.catalog.streams import Catalog
from sql.errors import DataError

Value = TypeVar("Value")


class LastValid(Generic[Value]):
    """The parameter with the present values of its variables. Those that it cannot have are reported once,
    and the last ones that it could have stay in force."""

    def __init__(
        self,
        read: Callable[[], Value],
        variables: frozenset[str],
        catalog: Catalog,
        report: Callable[[DataError], None],
    ) -> None:
        self.read = read
        self.variables = variables
        self.catalog = catalog
        self.report = report
        self.take()

    def take(self) -> None:
        self.known, self.refused = self.read(), ""
        self.values = self.catalog.values_of(self.variables) if self.variables else {}

    def __call__(self) -> Value:
        try:
            self.take()
        except DataError as error:
            if str(error) != self.refused:
                self.refused = str(error)
                self.report(error)
        return self.known

    def has_moved(self) -> bool:
        """True if a variable has another value than the parameter was read with."""
        return self.catalog.values_of(self.variables) != self.values

    def snapshot(self) -> tuple[dict[str, Any], str]:
        """The last values that it could have, and what was reported last."""
        return self.values, self.refused

    def restore(self, state: tuple[dict[str, Any], str]) -> None:
        values, refused = state
        with self.catalog.holding(values):
            self.take()
        self.refused = refused
