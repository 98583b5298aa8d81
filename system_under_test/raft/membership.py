"""Who belongs to a Raft group, and who of them votes.

It changes by one node at a time: then any majority before and any majority after have a voter in common, and no two
leaders can be elected in one term, whichever of the two a node goes by. A learner gets the log and counts for nothing;
a node that is to vote is a learner first, so that the group does not wait for one that has nothing yet.

Source: Ongaro, Consensus: Bridging Theory and Practice (2014), chapter 4.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field


class UnfitChange(ValueError):
    """A change of the membership that cannot be made, and why; nothing was appended."""


@dataclass(frozen=True, slots=True)
class AddLearner:
    node: str
    address: str


@dataclass(frozen=True, slots=True)
class Promote:
    """Let a learner vote."""

    node: str


@dataclass(frozen=True, slots=True)
class Remove:
    """A voter or a learner."""

    node: str


Change = AddLearner | Promote | Remove


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    voters: Mapping[str, str]
    """Raft address by node."""
    learners: Mapping[str, str] = field(default_factory=dict)

    @property
    def majority(self) -> int:
        return len(self.voters) // 2 + 1

    @property
    def addresses(self) -> dict[str, str]:
        """Of all members, sorted by node."""
        return dict(sorted([*self.voters.items(), *self.learners.items()]))

    def changed(self, change: Change) -> Membership:
        """Raises UnfitChange."""
        voters, learners = dict(self.voters), dict(self.learners)
        if isinstance(change, AddLearner):
            if change.node in self.addresses:
                raise UnfitChange(f"{change.node} is a member already")
            learners[change.node] = change.address
        elif isinstance(change, Promote):
            if change.node not in learners:
                raise UnfitChange(f"{change.node} is no learner")
            voters[change.node] = learners.pop(change.node)
        else:
            if change.node not in self.addresses:
                raise UnfitChange(f"{change.node} is no member")
            if [*voters] == [change.node]:
                raise UnfitChange(f"{change.node} is the only one that votes")
            voters.pop(change.node, None)
            learners.pop(change.node, None)
        return Membership(voters=voters, learners=learners)


def encode(membership: Membership) -> bytes:
    fields = {"voters": dict(membership.voters), "learners": dict(membership.learners)}
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()


def decode(encoded: bytes) -> Membership:
    """Raises ValueError for bytes that `encode` never wrote."""
    try:
        fields = json.loads(encoded)
        made = Membership(voters=dict(fields["voters"]), learners=dict(fields["learners"]))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"no membership: {error!r}") from error
    texts = [*made.voters, *made.voters.values(), *made.learners, *made.learners.values()]
    if not made.voters or made.voters.keys() & made.learners.keys() or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"no membership: {made}")
    return made
