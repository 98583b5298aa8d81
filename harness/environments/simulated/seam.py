"""The exceptions that nodes catch, looked up at run time.

The simulated host satisfies the protocols of `system_under_test.runtime.host` by structure alone, so the
harness need not import the system. Exceptions are the one thing that structure cannot give: a node that
writes `except ConnectionClosed` means that very class. So the module which defines them is named as text
and resolved when a simulation starts; a system with a seam of its own gives another name.
"""

from __future__ import annotations

import importlib
from typing import NamedTuple

DEFAULT_SEAM = "system_under_test.runtime.host"


class SeamExceptions(NamedTuple):
    """The classes that a simulated host raises."""

    ConnectionClosed: type[Exception]
    ConnectFailed: type[Exception]
    DiskFull: type[OSError]
    DiskError: type[OSError]


def seam_exceptions(module: str = DEFAULT_SEAM) -> SeamExceptions:
    """The four exceptions of the seam that `module` defines."""
    seam = importlib.import_module(module)
    return SeamExceptions(*(getattr(seam, name) for name in SeamExceptions._fields))
