"""Who works on a stored message takes what it says for possible.

A count of times at its greatest ends the master that adds one to it; a body compressed by a type that nobody knows ends
the proxy that is to show it to its producer. Broken rule: a stored message ends nobody who works on it.
"""

from __future__ import annotations

from dataclasses import replace

from system_under_test.node.mutant import Mutant
from system_under_test.remoting.command import RemotingCommand
from system_under_test.rocketmq.broker.admission import Admission
from system_under_test.rocketmq.broker.consuming.retries import Return, what_becomes_of
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.consumer_group import ConsumerGroup
from system_under_test.rocketmq.consumer_protocol import SendBackRequest
from system_under_test.rocketmq.proxy.messages import delivered
from system_under_test.rocketmq.proxy.parts import ProxyParts
from system_under_test.rocketmq.proxy.transactions import ProxyTransactions
from system_under_test.rocketmq.transaction_protocol import CheckTransaction
from system_under_test.storage.message import Message, decode_message


def counted_on(message: Message, request: SendBackRequest, group: ConsumerGroup) -> Return:
    return replace(what_becomes_of(message, request, group), reconsume_times=message.reconsume_times + 1)


def _any_compression(sys_flag: int) -> None:
    return None


class Unguarded(ProxyTransactions):
    async def _hand_on(self, command: RemotingCommand) -> None:
        delivered(decode_message(CheckTransaction.decode(command).message, 0), None, 1)
        await super()._hand_on(command)


MUTANT = Mutant(
    name="poison-unguarded",
    breaks="a stored message ends no node",
    parts=(
        BrokerParts(what_becomes_of=counted_on, admission=Admission(require_known_compression=_any_compression)),
        ProxyParts(transactions=Unguarded),
    ),
)
