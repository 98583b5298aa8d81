"""What administrators do to a system while it serves, by its own means (`harness.abilities.Administered`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

ADMINISTER = "administer"
"""The kind of a fault that is an administrator's act."""


class Act(Protocol):
    """One act, done once. Both methods raise OperationError where the system refuses, definite where certainly nothing
    was changed nor will be, and may be cancelled."""

    async def begin(self) -> str:
        """Carry it out. Return what was done, in words."""

    async def end(self) -> str:
        """Do what it leaves to be done, as to make again what it deleted; called until it succeeds, also where nobody
        knows whether it had begun. Return what was done, in words."""


Acts = Callable[[str], Act]
"""Makes an act of one system as it is set by its name, to be carried out from one host."""
