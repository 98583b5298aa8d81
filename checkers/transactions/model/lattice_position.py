"""The position of a history in the lattice: models that are ruled out, models that are proved, and what follows for the
demanded one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from checkers.api.verdict import Verdict
from checkers.transactions.model.lattice import ConsistencyModel, implied, ruled_out, stronger_too, strongest


@dataclass(frozen=True, kw_only=True)
class LatticePosition:
    """What is known so far. Models outside both sets are undecided."""

    broken: frozenset[ConsistencyModel] = frozenset()
    """The models that are ruled out, with every model that implies one of them."""
    kept: frozenset[ConsistencyModel] = frozenset()
    """The models that are proved, with every model that they imply."""

    def breaking(self, models: Iterable[ConsistencyModel]) -> LatticePosition:
        return replace(self, broken=self.broken.union(stronger_too(models)))

    def showing(self, anomalies: Iterable[str]) -> LatticePosition:
        """The position after these anomalies were found."""
        return replace(self, broken=self.broken.union(ruled_out(anomalies)))

    def keeping(self, *models: ConsistencyModel) -> LatticePosition:
        return replace(self, kept=self.kept.union(*map(implied, models)))

    def deciding(self, model: ConsistencyModel, verdict: Verdict) -> LatticePosition:
        """The position after a decider's answer. UNKNOWN changes nothing."""
        if verdict is Verdict.UNKNOWN:
            return self
        return self.keeping(model) if verdict is Verdict.VALID else self.breaking([model])

    def verdict(self, demanded: ConsistencyModel) -> Verdict:
        assert self.broken.isdisjoint(self.kept), "a model is proved and ruled out"
        if demanded in self.broken:
            return Verdict.INVALID
        return Verdict.VALID if demanded in self.kept else Verdict.UNKNOWN

    def undecided(self, demanded: ConsistencyModel) -> tuple[ConsistencyModel, ...]:
        """The undecided models among the demanded one and those that it implies, in the order of `ConsistencyModel`."""
        return tuple(model for model in implied(demanded) if model not in self.broken and model not in self.kept)

    def strongest(self, demanded: ConsistencyModel) -> tuple[ConsistencyModel, ...]:
        """Among the demanded model and those that it implies, the strongest that are not ruled out. Models stronger
        than the demanded one are not examined, so nothing is claimed of them."""
        return strongest(set(implied(demanded)) - self.broken)

    def in_order(self) -> tuple[ConsistencyModel, ...]:
        """The models that are ruled out, in the order of `ConsistencyModel`."""
        return tuple(model for model in ConsistencyModel if model in self.broken)
