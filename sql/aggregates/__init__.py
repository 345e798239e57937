"""The aggregate functions. Importing this package imports every file of it, and so registers all of them.

`base` holds the contract and the registry.
"""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
