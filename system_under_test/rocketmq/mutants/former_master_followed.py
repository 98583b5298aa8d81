"""former-master-followed: a slave whose connection is open when it hears of another master stays with that connection.

Once the former master is none any more it turns the slave away, and the slave asks it again for as long as the new
master lasts. So do slaves of published releases of RocketMQ, whose former masters do not even turn them away. Broken
rule: a slave follows whom the controllers name.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts


def only_from_silence(hears_former: bool) -> bool:
    return not hears_former


MUTANT = Mutant(
    name="former-master-followed",
    breaks="who is well and connected comes back into the SyncStateSet",
    parts=(BrokerParts(turns_to_new_master=only_from_silence),),
)
