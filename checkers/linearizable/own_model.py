"""Models by name: those that are included, and a user's own as `module:NAME`, found on Python's path.

A user's model is a `Model` in a module. Workers of Spark import it as well. Those of this machine look for it where
this process does; on other machines it must be installed, or its directory must be on their PYTHONPATH.
"""

from __future__ import annotations

import importlib
from dataclasses import replace

from checkers.linearizable.model import Model
from checkers.linearizable.objects import MODELS

SEPARATOR = ":"


class NoModel(Exception):
    """Nothing of that name is a model; says what was expected, and what there is."""


def model_of(name: str) -> Model:
    """The model of this name. A user's own model keeps the name `module:NAME`. Raises NoModel."""
    if SEPARATOR not in name:
        if name not in MODELS:
            raise NoModel(f"there is no model {name!r}, only {', '.join(MODELS)}, or one's own as module:NAME")
        return MODELS[name]
    module_name, _, attribute = name.partition(SEPARATOR)
    if not module_name or not attribute.isidentifier():
        raise NoModel(f"a model of one's own is named module:NAME, e.g. tickets:TICKETS, got {name!r}")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise NoModel(
            f"model {name} cannot be imported: there is no module {error.name!r} on Python's path; install it, or name "
            "its directory in PYTHONPATH"
        ) from None
    except Exception as error:  # noqa: BLE001  whatever a user's module raises
        raise NoModel(f"model {name} cannot be imported: {type(error).__name__}: {error}") from None
    model = getattr(module, attribute, None)
    if not isinstance(model, Model):
        what = "is not there" if not hasattr(module, attribute) else f"is {type(model).__name__}"
        raise NoModel(f"{attribute} in module {module_name} must be a Model of stormproof, it {what}")
    return replace(model, name=name)
