"""Selectors of the partitions that a read or a query on demand covers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sql.algebra.context.keyed import CategoriesLevel, HashedLevel, KeyedLevel
from sql.algebra.context.level import LiveLevel
from sql.algebra.context.partition import Partition
from sql.errors import DataError
from sql.types import key_of


class Selector(ABC):
    """Chooses among the innermost partitions."""

    @abstractmethod
    def takes(self, partition: Partition) -> bool:
        """True if a partition is chosen."""


@dataclass(frozen=True)
class EveryPartition(Selector):
    """All of them."""

    def takes(self, partition: Partition) -> bool:
        return True


EVERY: Final = EveryPartition()


@dataclass(frozen=True)
class Ids(Selector):
    """By id."""

    ids: frozenset[int]

    def takes(self, partition: Partition) -> bool:
        return partition.id in self.ids


@dataclass(frozen=True)
class KeySelector(Selector):
    """Partitions of one kind of level: by the normal forms of key tuples, by hash modulo granularity, or by
    label."""

    level: type[LiveLevel]
    keys: frozenset[Any]

    def takes(self, partition: Partition) -> bool:
        return isinstance(partition.level, self.level) and partition.key in self.keys


class Has(Selector):
    """By the values of properties; those of a nested context are `Name.property`."""

    def __init__(self, wanted: Mapping[str, Any]) -> None:
        self.wanted = {name: key_of(value) for name, value in wanted.items()}

    def takes(self, partition: Partition) -> bool:
        found = properties_of(partition)
        return all(key_of(_within(found, name)) == value for name, value in self.wanted.items())


class Nested(Selector):
    """One selector per level, from the outermost."""

    def __init__(self, selectors: Sequence[Selector]) -> None:
        self.selectors = tuple(selectors)

    def takes(self, partition: Partition) -> bool:
        path = partition.path()
        return len(path) == len(self.selectors) and all(
            selector.takes(item) for selector, item in zip(self.selectors, path, strict=True)
        )


def selector_of(data: object) -> Selector:
    """The selector a mapping describes: all, ids, keys, hashes, labels, has or nested. Raises DataError."""
    kinds: dict[str, Callable[[Any], Selector]] = {
        "all": lambda value: EVERY,
        "ids": lambda value: Ids(frozenset(value)),
        "keys": lambda value: KeySelector(KeyedLevel, frozenset(map(_key, value))),
        "hashes": lambda value: KeySelector(HashedLevel, frozenset(value)),
        "labels": lambda value: KeySelector(CategoriesLevel, frozenset(value)),
        "has": Has,
        "nested": lambda value: Nested([selector_of(item) for item in value]),
    }
    if not isinstance(data, Mapping) or len(data) != 1 or next(iter(data)) not in kinds:
        raise DataError(f"partitions are chosen by one of {', '.join(kinds)}, not by {data!r}")
    name, value = next(iter(data.items()))
    try:
        return kinds[name](value)
    except (TypeError, AttributeError) as error:
        raise DataError(f"{value!r} does not say which partitions: {error}") from error


def _key(values: Sequence[Any]) -> Any:
    parts = [key_of(value) for value in values]
    return parts[0] if len(parts) == 1 else tuple(parts)


def properties_of(partition: Partition) -> dict[str, Any]:
    """The properties of an innermost partition: `id`, and those of its level; of a nested
    one by the level's name."""
    path = partition.path()
    found: dict[str, Any] = {"id": partition.id}
    for item in path:
        assert item.level is not None
        definition = item.level.definition
        values = dict(zip(definition.properties, item.values, strict=True))
        if len(path) == 1:
            found |= {"name": definition.name, **values}
        else:
            found[definition.name] = {"name": definition.name, **values}
    return found


def _within(found: object, path: str) -> Any:
    for name in path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found
