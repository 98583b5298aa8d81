"""nameserver-lower-epoch: of two brokers that claim to be the master the later one gets the route, whatever its epoch.

A deposed master that does not know it yet registers again, as all do from time to time, and clients are sent to it.
Broken rule: the claim with the larger state version, which carries the master epoch, stays.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.nameserver.parts import NameServerParts
from system_under_test.rocketmq.nameserver.registration import Registration


def nobody_outranks(holder: Registration, claim: Registration) -> bool:
    return False


MUTANT = Mutant(
    name="nameserver-lower-epoch",
    breaks="a route once taken to a newer master does not go back",
    parts=(NameServerParts(outranks=nobody_outranks),),
)
