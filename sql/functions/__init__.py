"""The scalar functions, by category. Importing this package imports every file of it,
and so fills the registry.

Heavy libraries load at their first use.
"""

import importlib
import pkgutil

from sql.functions.definition import Context, Function
from sql.functions.refused import REFUSED
from sql.functions.registry import Parameter, all_functions, function, lookup, names

for _module in pkgutil.walk_packages(__path__, f"{__name__}."):
    importlib.import_module(_module.name)

__all__ = ["REFUSED", "Context", "Function", "Parameter", "all_functions", "function", "lookup", "names"]
