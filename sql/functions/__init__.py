"""The scalar functions, by category. Importing this package fills the registry; heavy libraries load at first use."""

from sql.functions import (
    arrays,
    casting,
    dates,
    hashing,
    json_,
    matching,
    mathematics,
    objects,
    other,
    text,
    transform,
)
from sql.functions.refused import REFUSED
from sql.functions.registry import Context, Function, Parameter, all_functions, function, lookup, names

__all__ = [
    "REFUSED",
    "Context",
    "Function",
    "Parameter",
    "all_functions",
    "arrays",
    "casting",
    "dates",
    "function",
    "hashing",
    "json_",
    "lookup",
    "matching",
    "mathematics",
    "names",
    "objects",
    "other",
    "text",
    "transform",
]
