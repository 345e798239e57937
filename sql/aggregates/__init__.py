"""The aggregate functions. Importing this package registers all of them; `base` holds the contract and the registry."""

from sql.aggregates import extremes, order, sums

__all__ = ["extremes", "order", "sums"]
