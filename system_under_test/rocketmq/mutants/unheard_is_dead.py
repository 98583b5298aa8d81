"""unheard-is-dead: a controller elects among those that it has heard of, however short a time it has listened.

One that has just become active passes over members of the SyncStateSet that hold everything and were never away, for a
master that came back with less. Broken rule: nobody in sync is passed over who has not been silent for the whole
time-out.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.controller.heartbeat import Liveness
from system_under_test.rocketmq.controller.parts import ControllerParts
from system_under_test.rocketmq.controller.state_machine import Group, Rules


def nobody(group: Group, liveness: Liveness) -> tuple[int, ...]:
    return ()


def living_without_a_word_since(group: Group, liveness: Liveness, newborn: int) -> tuple[int, ...]:
    return tuple(
        member
        for member in group.sync_state_set
        if member != newborn
        and group.living(member, liveness) is not None
        and not liveness.has_reported_since_birth(group.name, member, newborn)
    )


MUTANT = Mutant(
    name="unheard-is-dead",
    breaks="who is in sync and lives is not passed over",
    parts=(ControllerParts(rules=Rules(awaited=nobody, awaited_by_newborn=living_without_a_word_since)),),
)
