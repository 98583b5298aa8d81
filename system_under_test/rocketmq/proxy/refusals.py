"""What a proxy's client is told where something did not come about: codes of version 2 for those of remoting."""

from __future__ import annotations

from collections.abc import Sequence

from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.rocketmq.proxy.v2 import Code, Status


class Refused(Exception):
    """A call that is answered with another code than OK."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(f"{code.name}: {message}")
        self.code = code
        self.message = message

    @property
    def status(self) -> Status:
        return Status(code=self.code, message=self.message)


OK = Status(code=Code.OK, message="OK")

_CODES = {
    ResponseCode.FLUSH_DISK_TIMEOUT: Code.MASTER_PERSISTENCE_TIMEOUT,
    ResponseCode.FLUSH_SLAVE_TIMEOUT: Code.SLAVE_PERSISTENCE_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE: Code.HA_NOT_AVAILABLE,
    ResponseCode.IN_SYNC_REPLICAS_NOT_ENOUGH: Code.HA_NOT_AVAILABLE,
    ResponseCode.NOT_MASTER: Code.HA_NOT_AVAILABLE,
    ResponseCode.SERVICE_NOT_AVAILABLE: Code.INTERNAL_SERVER_ERROR,
    ResponseCode.SYSTEM_BUSY: Code.TOO_MANY_REQUESTS,
    ResponseCode.MESSAGE_ILLEGAL: Code.BAD_REQUEST,
    ResponseCode.INVALID_PARAMETER: Code.BAD_REQUEST,
    ResponseCode.TOPIC_NOT_EXIST: Code.TOPIC_NOT_FOUND,
    ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST: Code.CONSUMER_GROUP_NOT_FOUND,
    ResponseCode.NO_PERMISSION: Code.FORBIDDEN,
    ResponseCode.QUERY_NOT_FOUND: Code.OFFSET_NOT_FOUND,
    ResponseCode.PULL_OFFSET_MOVED: Code.ILLEGAL_OFFSET,
    ResponseCode.NO_MESSAGE: Code.INVALID_RECEIPT_HANDLE,
    ResponseCode.SUBSCRIPTION_PARSE_FAILED: Code.ILLEGAL_FILTER_EXPRESSION,
}


def common_status(statuses: Sequence[Status | None]) -> Status:
    """Of a call as a whole: what all its parts have in common."""
    known = [status for status in statuses if status is not None]
    if all(status.code == known[0].code for status in known):
        return known[0]
    return Status(code=Code.MULTIPLE_RESULTS, message="the parts of the call have different outcomes")


def refused_by_broker(response: RemotingCommand) -> Refused:
    """Of a broker's answer that is not SUCCESS."""
    try:
        code = _CODES.get(ResponseCode(response.code), Code.INTERNAL_SERVER_ERROR)
    except ValueError:
        code = Code.INTERNAL_SERVER_ERROR
    return Refused(code, f"the broker answered {response.code} {response.remark or ''}".rstrip())
