"""fractured-read: a transaction that only reads looks at its keys one after the other, not at one moment.

Between two looks other transactions take effect: a read of all accounts sees the payer before a transfer and the payee
after it, and so more money than there is. Broken rule: a transaction happens at one moment.
"""

from __future__ import annotations

import json

from system_under_test.node.mutant import Mutant
from system_under_test.replicated.key_value import KeyValueStore, Result, transaction
from system_under_test.replicated.key_value_service import KeyValueParts
from system_under_test.rocketmq.controller.parts import ControllerParts
from system_under_test.runtime.host import Host

BETWEEN_READS_S = 0.02


async def one_by_one(host: Host, store: KeyValueStore, command: bytes) -> Result:
    shown = []
    for operation in json.loads(command)["txn"]:
        shown += store.apply(transaction([operation])).value
        await host.clock.sleep(BETWEEN_READS_S)
    return Result(succeeded=True, value=shown)


MUTANT = Mutant(
    name="fractured-read",
    breaks="a transaction reads all keys at one moment",
    parts=(ControllerParts(values=KeyValueParts(read_transaction=one_by_one)),),
)
