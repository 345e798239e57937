"""Derived-value windows: numbers of the events in a window, posted as one row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from sql.aggregates.base import Aggregate
from sql.aggregates.bivariate import PairCorrelation, Regression, WeightedMean
from sql.algebra.derived.statistics import Size
from sql.algebra.derived.univariate import UNIVARIATE, Univariate
from sql.algebra.windows.catalog import Start, WindowSpec, parameters, register_window
from sql.algebra.windows.facts import Stage

REGRESSION = (
    "slope YIntercept XAverage XStandardDeviationPop XStandardDeviationSample XSum XVariance YAverage "
    "YStandardDeviationPop YStandardDeviationSample YSum YVariance dataPoints n sumX sumXSq sumXY sumY sumYSq"
)


def _register(
    name: str,
    values: str,
    columns: str,
    make: Callable[[Start], Any],
    example: str,
    summary: str,
    namespace: str = "stat",
    aggregates: Mapping[str, Aggregate] = MappingProxyType({}),
) -> None:
    register_window(
        WindowSpec(
            name=name,
            namespace=namespace,
            role="derived",
            parameters=parameters(f"{values} extras:extras?"),
            make=make,
            columns=tuple(columns.split()),
            aggregates=aggregates,
            composition=(Stage("Agg", note="posting the changed row"),),
            state="a few numbers",
            example=example,
            summary=summary,
        )
    )


_register("size", "", "size", lambda start: Size(), "E#time(1 min)#size", "the number of events", "std")
_register(
    "uni",
    "x:value",
    " ".join(UNIVARIATE),
    lambda start: Univariate(),
    "E#length(10)#uni(price)",
    "univariate statistics",
    aggregates=UNIVARIATE,
)
_register(
    "linest",
    "x:value y:value",
    REGRESSION,
    lambda start: Regression(),
    "E#length(10)#linest(x, y)",
    "regression",
)
_register(
    "correl",
    "x:value y:value",
    "correlation",
    lambda start: PairCorrelation(),
    "E#length(10)#correl(x, y)",
    "correlation",
)
_register(
    "weighted_avg",
    "x:value w:value",
    "average",
    lambda start: WeightedMean(),
    "E#time(3 sec)#weighted_avg(price, volume)",
    "weighted average",
)
