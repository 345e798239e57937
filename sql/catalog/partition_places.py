"""The variables and relations that each partition of a context has for itself, as compiled texts read them.

A text serves all partitions: it reads such things by place from a list, into which the instance at work puts
those of its partition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class Own:
    """The places of a partition's variables and relations, by name; `at_work` holds those of the partition
    whose statement runs."""

    def __init__(self, variables: Sequence[str] = (), relations: Sequence[str] = ()) -> None:
        self.variables = {name: place for place, name in enumerate(variables)}
        self.relations = {name: place for place, name in enumerate(relations, len(variables))}
        self.at_work: list[Any] = [None] * (len(variables) + len(relations))

    def found(self, variables: Mapping[str, Any], relations: Mapping[str, Any]) -> Sequence[Any]:
        """The things of one partition, by place; None for one whose declaration has been removed."""
        return (*map(variables.get, self.variables), *map(relations.get, self.relations))
