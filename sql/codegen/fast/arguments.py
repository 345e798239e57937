"""The arguments of running aggregates, and the names under which the loop keeps what it needs of them."""

from __future__ import annotations

from sql.aggregates.inline import needs_scaled, needs_values, states
from sql.plan.bound import Bound


class Argument:
    """One distinct aggregate argument and what is kept for it, as local names of the loop."""

    def __init__(self, node: Bound, place: int, aggregates: list[str]) -> None:
        self.node = node
        self.place = place
        self.aggregates = aggregates
        self.states = states(aggregates)
        self.is_scaled = needs_scaled(aggregates)
        self.is_plain = needs_values(aggregates) or not self.is_scaled
        """Whether the values themselves are kept, beside or instead of the scaled ones."""
        self.local = {name: f"{name}_{place}" for name in ("count", "total", "floats", "low", "high")}
        self.local |= {"scaled": f"x_{place}", "left": f"left_{place}", "left_scaled": f"left_x_{place}"}

    @property
    def kept(self) -> list[str]:
        """The names that live from one push to the next."""
        queues = [f"values_{self.place}"] if self.is_plain else []
        queues += [f"scaled_{self.place}"] if self.is_scaled else []
        return queues + [self.local[state] for state in self.states]
