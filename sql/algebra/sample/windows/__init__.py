"""The windows of GROUP BY: each file is one window with its entry. Every file is imported, so that each can
add to the catalog."""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
