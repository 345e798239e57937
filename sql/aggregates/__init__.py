"""The aggregate functions. Importing this package registers all of them; `base` holds the contract and the registry."""

from sql.aggregates import byorder, ever, extremes, moments, order, quantiles, rates, sums

__all__ = ["byorder", "ever", "extremes", "moments", "order", "quantiles", "rates", "sums"]
