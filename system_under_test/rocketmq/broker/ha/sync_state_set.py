"""The master's view of its SyncStateSet: who is in it, who must ack, who should leave or join. Pure.

The controller owns the set; the master proposes changes and follows them only after the controller has
confirmed. Between the two it cannot know which set the controller will elect from, so every member of either
must ack: were a newcomer not waited for from the moment it is proposed, it could be elected before the reply
arrives, without a message that was acked meanwhile; were a leaver no longer waited for from that moment, it
could be elected because the proposal never arrived.

A proposal whose reply was lost stays open until the epoch of the set has passed: a GetReplicaInfo that shows the set
unchanged says only that the request has not arrived yet. The master withdraws it by a request that raises the epoch and
leaves the members alone; whichever of the two comes first fences the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from system_under_test.rocketmq.controller.protocol import SyncStateSet


@dataclass(frozen=True, kw_only=True, slots=True)
class SetView:
    """What a master knows of its SyncStateSet."""

    confirmed: SyncStateSet
    """What the controller last confirmed; the local set."""
    proposed: tuple[int, ...] | None = None
    """The set of the Alter whose outcome is not known, or None."""

    @property
    def members(self) -> tuple[int, ...]:
        return self.confirmed.members

    @property
    def must_ack(self) -> tuple[int, ...]:
        """Everybody the controller may elect from, members and proposed; ascending."""
        if self.proposed is None:
            return self.members
        return tuple(sorted({*self.members, *self.proposed}))


@dataclass(frozen=True, kw_only=True, slots=True)
class SlaveProgress:
    """What the master knows of one connected slave."""

    acked_offset: int
    caught_up_ns: int
    """Monotonic time at which the slave is known to have held all that the master held."""
    electable: bool
    """False for a learner, and for a slave that holds only a part of the log."""


def wanted_members(
    view: SetView,
    slaves: Mapping[int, SlaveProgress],
    *,
    own_id: int,
    confirm_offset: int,
    epoch_start_offset: int,
    now_ns: int,
    max_time_not_caught_up_ns: int,
    last_newcomer: int = 0,
) -> tuple[int, ...] | None:
    """The set to propose now, or None: nothing to change, or an Alter still open.

    A member leaves when it is disconnected, has not been caught up for too long, or may not be elected any more: it
    came back as a learner, or with a part of the log. A slave joins when it holds all that is confirmed (so it misses
    nothing that was acked) and has reached the current epoch.

    Members that have to leave do so first, and newcomers join one by one, the first after `last_newcomer` by id: the
    controller refuses a set with a newcomer that it does not hear, and nobody else is to wait for that one.
    """
    if view.proposed is not None:
        return None
    floor = max(confirm_offset, epoch_start_offset)
    # One that would have to leave again at once does not join.
    holding = [
        broker_id
        for broker_id, slave in slaves.items()
        if slave.electable and now_ns - slave.caught_up_ns <= max_time_not_caught_up_ns
    ]
    staying = {own_id, *(broker_id for broker_id in holding if broker_id in view.members)}
    if staying != set(view.members):
        return tuple(sorted(staying))
    newcomers = [
        broker_id for broker_id in holding if broker_id not in staying and slaves[broker_id].acked_offset >= floor
    ]
    if not newcomers:
        return None
    newcomer = min(newcomers, key=lambda broker_id: (broker_id <= last_newcomer, broker_id))
    return tuple(sorted({*staying, newcomer}))


def begin_alter(view: SetView, proposed: tuple[int, ...]) -> SetView:
    """The Alter is about to be sent: members stay, the proposed are waited for as well."""
    return replace(view, proposed=proposed)


def alter_refused(view: SetView) -> SetView:
    """The Alter certainly was not and will not be applied."""
    return replace(view, proposed=None)


def controller_says(view: SetView, answer: SyncStateSet) -> SetView:
    """What holds, as the controller tells in whatever answer: a newer epoch decides what became of the proposal.

    The epoch that is known already says nothing of it, and an older one is a late answer.
    """
    if answer.epoch <= view.confirmed.epoch:
        return view
    return SetView(confirmed=answer)
