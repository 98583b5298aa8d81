"""What brokers and producers say to each other about transactions: typed requests and their remoting form."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError

HALF_MESSAGE: Final = "TRAN_MSG"
"""The property of a message whose transaction is still open."""
PRODUCER_GROUP: Final = "PGROUP"
UNIQUE_KEY: Final = "UNIQ_KEY"
TRANSACTION_ID: Final = "__transactionId__"
CHECK_TIMES: Final = "TRANSACTION_CHECK_TIMES"
IMMUNITY: Final = "CHECK_IMMUNITY_TIME_IN_SECONDS"
"""A producer's wish to be asked no earlier than that."""

PREPARED_FLAG: Final = 4
"""Says in a message's sysFlag that it is part of a transaction that is open."""
COMMITTED_FLAG: Final = 8
_MOST_DIGITS: Final = 19


class Decision(IntEnum):
    """How a transaction ends, as commitOrRollback says it."""

    UNKNOWN = 0
    COMMIT = 8
    ROLLBACK = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTransaction:
    """`queue_offset` and `log_offset` are those of the half message."""

    producer_group: str
    queue_offset: int
    log_offset: int
    decision: Decision
    is_answer: bool = False
    """It answers a broker that has asked."""
    message_id: str = ""
    transaction_id: str = ""

    def fields(self) -> dict[str, str]:
        return {
            "producerGroup": self.producer_group,
            "tranStateTableOffset": str(self.queue_offset),
            "commitLogOffset": str(self.log_offset),
            "commitOrRollback": str(int(self.decision)),
            "fromTransactionCheck": "true" if self.is_answer else "false",
            "msgId": self.message_id,
            "transactionId": self.transaction_id,
        }

    def encode(self) -> RemotingCommand:
        return RemotingCommand.request(RequestCode.END_TRANSACTION, self.fields())

    def encode_oneway(self) -> RemotingCommand:
        return RemotingCommand.oneway(RequestCode.END_TRANSACTION, self.fields())

    @classmethod
    def decode(cls, command: RemotingCommand) -> EndTransaction:
        """Raises RemotingError (INVALID_PARAMETER)."""
        fields = command.ext_fields
        try:
            return cls(
                producer_group=fields["producerGroup"],
                queue_offset=_number(fields["tranStateTableOffset"]),
                log_offset=_number(fields["commitLogOffset"]),
                decision=Decision(_number(fields["commitOrRollback"])),
                is_answer=fields.get("fromTransactionCheck", "false").lower() == "true",
                message_id=fields.get("msgId") or "",
                transaction_id=fields.get("transactionId") or "",
            )
        except (KeyError, ValueError) as error:
            raise RemotingError(ResponseCode.INVALID_PARAMETER, f"no end of a transaction: {error!r}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckTransaction:
    """A broker's question how a transaction ends; `message` is the half message, as its consumers would get it."""

    topic: str
    queue_offset: int
    log_offset: int
    message_id: str
    broker_name: str
    message: bytes

    def encode(self) -> RemotingCommand:
        fields = {
            "topic": self.topic,
            "tranStateTableOffset": str(self.queue_offset),
            "commitLogOffset": str(self.log_offset),
            "msgId": self.message_id,
            "transactionId": self.message_id,
            "offsetMsgId": f"{self.log_offset:032X}",
            "bname": self.broker_name,
        }
        return RemotingCommand.oneway(RequestCode.CHECK_TRANSACTION_STATE, fields, self.message)

    @classmethod
    def decode(cls, command: RemotingCommand) -> CheckTransaction:
        """Raises RemotingError (INVALID_PARAMETER)."""
        fields = command.ext_fields
        try:
            return cls(
                topic=fields.get("topic", ""),
                queue_offset=_number(fields["tranStateTableOffset"]),
                log_offset=_number(fields["commitLogOffset"]),
                message_id=fields.get("msgId") or "",
                broker_name=fields.get("bname") or "",
                message=command.body,
            )
        except (KeyError, ValueError) as error:
            raise RemotingError(ResponseCode.INVALID_PARAMETER, f"no question about one: {error!r}") from error


def _number(text: str) -> int:
    """Raises ValueError."""
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(text)} digits")
    number = int(text)
    if number < 0:
        raise ValueError(f"{number} is negative")
    return number
