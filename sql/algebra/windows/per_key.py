"""`groupwin` and `merge`: a window per key."""

from __future__ import annotations

from sql.algebra.windows.catalog import WindowSpec, parameters, register_window
from sql.algebra.windows.facts import Stage
from sql.costs import Extra, WindowCost

register_window(
    WindowSpec(
        name="groupwin",
        namespace="std",
        role="group",
        parameters=parameters("keys:keys"),
        composition=(Stage("Key", "{k}, window"),),
        cost=WindowCost(None, (Extra.HASH,)),
        state="a window per key",
        clock="that of the window",
        example="E#groupwin(k)#length(5)",
        summary="a window per key",
        unbounded="groupwin keeps a window for every key ever seen",
    ),
    WindowSpec(
        name="merge",
        namespace="std",
        role="merge",
        parameters=parameters("keys:keys"),
        composition=(Stage("end of Key"),),
        state="none",
        example="E#groupwin(k)#length(5)#merge(k)#uni(v)",
        summary="the end of the grouped part",
    ),
)
