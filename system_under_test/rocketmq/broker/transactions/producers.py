"""Which producers of which groups are connected, as their heartbeats say: a broker may ask one about a transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.remoting.json_body import decode_json
from system_under_test.remoting.server import Peer
from system_under_test.runtime.host import Host

EXPIRES_S: Final = 120.0
MAX_GROUPS: Final = 10_000
MAX_GROUPS_A_CLIENT: Final = 100
MAX_CLIENTS_A_GROUP: Final = 10_000


@dataclass(slots=True)
class _Producer:
    peer: Peer
    heard_ns: int


class Producers:
    """A client counts as connected until its connection ends, or it was silent for two minutes."""

    def __init__(self, host: Host) -> None:
        self._clock = host.clock
        self._groups: dict[str, dict[str, _Producer]] = {}
        self._asked: dict[str, int] = {}
        """Group -> how often one of it was chosen."""

    def heard(self, heartbeat: bytes, peer: Peer) -> None:
        """A client's heartbeat, as RocketMQ's HeartbeatData. Raises RemotingError (INVALID_PARAMETER)."""
        client, groups = producers_in(heartbeat)
        for group in groups:
            producers = self._groups.get(group)
            if producers is None:
                if len(self._groups) >= MAX_GROUPS:
                    raise RemotingError(ResponseCode.SYSTEM_BUSY, f"there are {MAX_GROUPS} groups of producers already")
                producers = self._groups[group] = {}
            if client not in producers and len(producers) >= MAX_CLIENTS_A_GROUP:
                raise RemotingError(ResponseCode.SYSTEM_BUSY, f"group {group} has {MAX_CLIENTS_A_GROUP} producers")
            producers[client] = _Producer(peer, self._clock.monotonic_ns())

    def closed(self, peer: Peer) -> None:
        """A connection has ended."""
        for group in list(self._groups):
            for client in [name for name, producer in self._groups[group].items() if producer.peer is peer]:
                self._forget(group, client)

    def one_of(self, group: str) -> Peer | None:
        """A connection to a producer of the group, each in its turn; None if there is none."""
        oldest_ns = self._clock.monotonic_ns() - int(EXPIRES_S * 1e9)
        for client, producer in list(self._groups.get(group, {}).items()):
            if producer.peer.closed or producer.heard_ns < oldest_ns:
                self._forget(group, client)
        producers = list(self._groups.get(group, {}).values())
        if not producers:
            return None
        turn = self._asked.get(group, 0)
        self._asked[group] = turn + 1
        return producers[turn % len(producers)].peer

    def unregister(self, command: RemotingCommand) -> None:
        """A client says that it goes."""
        client, group = command.ext_fields.get("clientID", ""), command.ext_fields.get("producerGroup")
        if group:
            self._forget(group, client)

    def _forget(self, group: str, client: str) -> None:
        producers = self._groups.get(group, {})
        producers.pop(client, None)
        if not producers:
            self._groups.pop(group, None)
            self._asked.pop(group, None)


def producers_in(heartbeat: bytes) -> tuple[str, tuple[str, ...]]:
    """The client's id, and the groups of which it is a producer. Raises RemotingError (INVALID_PARAMETER)."""
    try:
        value: Mapping[str, Any] = decode_json(heartbeat)
        client = value["clientID"]
        groups = tuple(entry["groupName"] for entry in value.get("producerDataSet") or ())
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _no_heartbeat(repr(error)) from error
    if not all(type(name) is str and 0 < len(name) <= 255 for name in (client, *groups)):
        raise _no_heartbeat("names have 1 to 255 characters")
    if len(groups) > MAX_GROUPS_A_CLIENT:
        raise _no_heartbeat(f"{len(groups)} groups of producers, at most {MAX_GROUPS_A_CLIENT} are possible")
    return client, groups


def _no_heartbeat(reason: str) -> RemotingError:
    return RemotingError(
        ResponseCode.INVALID_PARAMETER, f"a heartbeat is JSON with clientID and producerDataSet: {reason}"
    )
