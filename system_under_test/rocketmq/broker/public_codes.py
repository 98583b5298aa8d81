"""What clients that others have written are told where this system has codes of its own.

The own codes say more: that nothing was done, and why. RocketMQ's producers know nothing of them, and would give up
where they should ask again. Each becomes the code with which RocketMQ's broker refuses for that reason, and upon which
its producers try another broker or the same one once more; as nothing was written, that is safe.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import Language, RemotingCommand

_PUBLIC: Final[Mapping[int, tuple[ResponseCode, str]]] = {
    ResponseCode.NOT_MASTER: (ResponseCode.SERVICE_NOT_AVAILABLE, "service not available now"),
    ResponseCode.DISK_FULL: (ResponseCode.SERVICE_NOT_AVAILABLE, "service not available now, the disk is full"),
    ResponseCode.IN_SYNC_REPLICAS_NOT_ENOUGH: (ResponseCode.SYSTEM_ERROR, "in-sync replicas not enough"),
}
"""Own code → RocketMQ's, and how its remark begins."""


def use_public_code(request: RemotingCommand, answer: RemotingCommand) -> None:
    """Change the answer for clients that say in which language they are written: the own ones do not."""
    public = _PUBLIC.get(answer.code)
    if public is not None and request.language is not Language.OTHER:
        code, remark = public
        answer.code = code
        answer.remark = f"{remark}: {answer.remark}" if answer.remark else remark
