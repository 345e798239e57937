"""Selectors of the partitions that a read or a query on demand covers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sql.algebra.context.partition import Partition
from sql.errors import DataError
from sql.types import key_of

Selector = Callable[[Partition], bool]
"""True of the innermost partitions that are chosen."""


def every(partition: Partition) -> bool:
    return True


def selector_of(data: object) -> Selector:
    """The selector a mapping describes: all, ids, keys, hashes, labels, has or nested. Raises DataError."""
    kinds: dict[str, Callable[[Any], Selector]] = {
        "all": lambda value: every,
        "ids": _by_id,
        "keys": lambda value: _by_key("keys", map(_key, value)),
        "hashes": lambda value: _by_key("hashes", value),
        "labels": lambda value: _by_key("labels", value),
        "has": _by_properties,
        "nested": _by_level,
    }
    if not isinstance(data, Mapping) or len(data) != 1 or next(iter(data)) not in kinds:
        raise DataError(f"partitions are chosen by one of {', '.join(kinds)}, not by {data!r}")
    name, value = next(iter(data.items()))
    try:
        return kinds[name](value)
    except (TypeError, AttributeError) as error:
        raise DataError(f"{value!r} does not say which partitions: {error}") from error


def _by_id(ids: Iterable[int]) -> Selector:
    wanted = frozenset(ids)
    return lambda partition: partition.id in wanted


def _by_key(word: str, keys: Iterable[Any]) -> Selector:
    """Partitions of the levels that are chosen by this word: by the normal forms of key tuples, by hash
    modulo granularity, or by label."""
    wanted = frozenset(keys)
    return lambda partition: (
        partition.level is not None
        and partition.level.definition.chosen_by == word
        and partition.key in wanted
    )


def _by_properties(properties: Mapping[str, Any]) -> Selector:
    """By the values of properties; those of a nested context are `Name.property`."""
    wanted = {name: key_of(value) for name, value in properties.items()}

    def takes(partition: Partition) -> bool:
        found = properties_of(partition)
        return all(key_of(_within(found, name)) == value for name, value in wanted.items())

    return takes


def _by_level(chosen: Iterable[object]) -> Selector:
    """One selector per level, from the outermost."""
    selectors = [selector_of(item) for item in chosen]

    def takes(partition: Partition) -> bool:
        path = partition.path()
        return len(path) == len(selectors) and all(
            selector(item) for selector, item in zip(selectors, path, strict=True)
        )

    return takes


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
