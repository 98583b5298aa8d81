"""Administrators act while the storm blows: a shape, and the fault that it becomes.

    administer remade-groups    groups of consumers are deleted, and made again at the fault's end

What the acts are is the system's affair (`harness.abilities.Administered`). A refused act changes nothing and is a
fault without effect. What an act leaves to be done is tried at the fault's end until it succeeds, whatever else strikes
meanwhile, beside the storm. The same act is not begun again before.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from harness.administration import ADMINISTER, Act
from harness.environments.environment import Effect, Environment
from nemesis.asking import asked_once, asked_until_done
from nemesis.cluster import Cluster

ACT_TIMEOUT_S = 5.0
"""Other faults wait meanwhile."""


@dataclass(frozen=True, slots=True)
class Administer:
    """One act, by its name."""

    act: str
    kind = ADMINISTER

    def strike(self, cluster: Cluster, draw: random.Random) -> UnderWay | None:
        if cluster.acts is None or self.act in cluster.under_way:
            return None
        return UnderWay(self.act, cluster.acts(self.act))

    def __str__(self) -> str:
        return f"administer {self.act}"


class UnderWay:
    """An act from its beginning until all that it leaves to be done is done; `stop` awaits that without bound."""

    kind = ADMINISTER
    nodes: tuple[str, ...] = ()

    def __init__(self, name: str, act: Act) -> None:
        self.name = name
        self.is_open = True
        """Also as long as it is not known; not where it was refused, and after its end."""
        self.refusal = ""
        """What kept it from its end the last time."""
        self._act = act

    @property
    def left(self) -> str:
        """What is wrong where its end never comes."""
        return f"{self.name} was not ended"

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "act": self.name}

    async def start(self, environment: Environment) -> Effect:
        asked = await asked_once(environment, ACT_TIMEOUT_S, self._act.begin(), self.name, "done")
        self.is_open = asked.happened
        return asked

    async def stop(self, environment: Environment) -> Effect:
        if not self.is_open:
            return Effect(False, f"nothing to heal: {self.name} was not done")
        words = await asked_until_done(self, environment, self._act.end)
        self.is_open = False
        return Effect(True, words)
