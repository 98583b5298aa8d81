"""id-without-check-code: once a group stands, every applicant for an id gets it, taken or not.

Check codes are compared only until the SyncStateSet has been altered for the first time; later an id that is taken is
handed to the applicant as though it had only lost the answer. Broken rule: an id belongs to one broker.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.controller.parts import ControllerParts
from system_under_test.rocketmq.controller.state_machine import ApplyBrokerId, Group, Rules, owns_id

FIRST_ELECTION = 1
"""The SyncStateSet epoch of a group that had an election and no Alter yet."""


def takes_its_word(group: Group, request: ApplyBrokerId) -> bool:
    return group.sync_state_set_epoch > FIRST_ELECTION or owns_id(group, request)


MUTANT = Mutant(
    name="id-without-check-code",
    breaks="an id belongs to one broker",
    parts=(ControllerParts(rules=Rules(owns_id=takes_its_word)),),
)
