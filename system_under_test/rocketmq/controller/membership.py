"""Which controllers there are, changed by administrators while they serve: one is added, removed, or made the leader.

Who is added gets the log as a learner and votes as soon as it has caught up, whichever controller is active then. Each
change is one entry of Raft's log, made by the active controller. RocketMQ's controllers have nothing of the kind; its
codes and fields are the project's own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from system_under_test.raft.driver import RaftNode
from system_under_test.raft.membership import UnfitChange
from system_under_test.remoting.client import RemotingClient
from system_under_test.remoting.codes import RequestCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.replicated.members import MemberChanges
from system_under_test.rocketmq.controller.config import ControllerConfig, peers_text
from system_under_test.rocketmq.controller.protocol import (
    MAX_ADDRESS,
    ControllerMetadata,
    KnownControllers,
    MalformedRequest,
    address,
    text,
)
from system_under_test.runtime.host import ConnectFailed, ConnectionClosed, Host

NEVER_CHANGED = 0
"""Version of the membership of a log that holds no change of it, and no snapshot."""
NEWCOMER_TIMEOUT_S = 2.0
"""How long a controller that is to be added may take to answer."""
_ID = re.compile(r"[A-Za-z0-9_.]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AddController:
    node: str
    address: str
    """Its Raft address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveController:
    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferLeadership:
    node: str


MemberRequest = AddController | RemoveController | TransferLeadership


def parse_member_request(command: RemotingCommand) -> MemberRequest | None:
    """None for a code that is no request of this kind. Raises MalformedRequest."""
    fields = command.ext_fields
    if command.code == RequestCode.CONTROLLER_ADD_MEMBER:
        at = address(fields, "controllerAddress")
        if ";" in at:
            raise MalformedRequest(f"field 'controllerAddress' is {at!r}, not one address")
        return AddController(node=_id(text(fields, "controllerId")), address=at)
    if command.code == RequestCode.CONTROLLER_REMOVE_MEMBER:
        return RemoveController(node=_check_known(text(fields, "controllerId")))
    if command.code == RequestCode.CONTROLLER_TRANSFER_LEADERSHIP:
        return TransferLeadership(node=_check_known(text(fields, "controllerId")))
    return None


def _id(node: str) -> str:
    if not _ID.fullmatch(node):
        raise MalformedRequest(f"field 'controllerId' is {node[:64]!r}; an id has 1 to 64 letters, digits, _ and .")
    return node


def _check_known(node: str) -> str:
    """An id that a configuration may have brought in: of any letters."""
    if len(node) > MAX_ADDRESS:
        raise MalformedRequest(f"field 'controllerId' has {len(node)} characters, ids have at most {MAX_ADDRESS}")
    return node


class ControllerMembership:
    def __init__(self, host: Host, raft: RaftNode, config: ControllerConfig, remoting: RemotingClient) -> None:
        self._remoting = remoting
        self._raft = raft
        self._config = config
        self._changes = MemberChanges(host, raft, config.self_id, self._check_newcomer, "controller", {})

    def stop(self) -> None:
        self._changes.stop()

    def metadata(self) -> ControllerMetadata:
        members = self._raft.membership
        return ControllerMetadata(
            group=self._config.group,
            leader_id=self._raft.leader,
            leader_address=self.request_address(self._raft.leader),
            is_active=self._raft.is_active,
            peers=peers_text(members.addresses),
            term=self._raft.term,
            learners=tuple(sorted(members.learners)),
            controllers=self.announced(),
        )

    def request_address(self, controller: str | None) -> str | None:
        """Where a member takes requests; None of others."""
        address = self._raft.membership.addresses.get(controller or "")
        return None if address is None else self._config.request_address(address)

    def announced(self) -> KnownControllers | None:
        """Where the controllers take requests, unless they always were those of the configuration: a node that has
        heard that one left has to hear that it is back."""
        addresses, version = self._raft.membership.addresses, self._raft.committed_membership_index
        if version is None or (version == NEVER_CHANGED and not self._config.joins):
            return None
        at = tuple(self._config.request_address(address) for address in addresses.values())
        return KnownControllers(addresses=at, version=version)

    def promote_learners(self) -> None:
        """Have them vote once they have caught up, as long as this controller is active."""
        self._changes.promote_learners()

    async def carry_out(self, request: MemberRequest) -> None:
        """Committed on return; of an addition that is when the new one votes. Raises UnfitChange, NotTakenOver and
        NotLeader: nothing was changed; LeadershipLost."""
        if isinstance(request, TransferLeadership):
            await self._changes.transfer(request.node)
        elif isinstance(request, RemoveController):
            await self._changes.remove(request.node)
        else:
            await self._changes.add(request.node, request.address)

    async def _check_newcomer(self, node: str, address: str) -> None:
        """It has to be there, and to belong to nobody else. Raises UnfitChange."""
        at = self._config.request_address(address)
        command = RemotingCommand.request(RequestCode.CONTROLLER_GET_METADATA_INFO)
        try:
            metadata = ControllerMetadata.from_fields(
                (await self._remoting.invoke(at, command, NEWCOMER_TIMEOUT_S)).ext_fields
            )
        except (ConnectFailed, ConnectionClosed, TimeoutError, MalformedRequest) as error:
            raise UnfitChange(f"no controller answers at {at}: {error}") from error
        if metadata.group != self._config.group:
            raise UnfitChange(f"the controller at {at} is one of group {metadata.group!r}, not {self._config.group!r}")
        if metadata.leader_address not in (None, self.request_address(self._config.self_id)):
            raise UnfitChange(f"the controller at {at} follows {metadata.leader_id}, at {metadata.leader_address}")
