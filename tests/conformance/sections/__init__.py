"""The rules, a module for each section (or a part of one)."""

import importlib
import pkgutil

__all__ = [found.name for found in pkgutil.iter_modules(__path__)]

for _name in __all__:
    importlib.import_module(f"{__name__}.{_name}")
