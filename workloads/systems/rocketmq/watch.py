"""What RocketMQ's nodes are doing now, from what they say: roles for faults, an abstract state for searches.

The state is the same for clusters that differ only in which broker is which: a word for each broker and controller,
sorted, then what is known of the SyncStateSet and of cut links, by the roles at their ends. Epochs and terms count by
their distance from the newest of any node, so that time alone makes no new state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.watch import BOOTED, CUT, ENDED, HEALED, PAUSED, RESUMED
from workloads.systems.rocketmq.settings import RocketmqSettings, broker_groups, controller_names, lone_name_servers

QUORUM_OF_THREE = 3
"""Fewer controllers than this cannot lose one."""
FARTHEST = 2
"""Epochs and terms that are older by more than this count as by this."""
LAGS = ("level", "near", "behind", "far")


@dataclass(slots=True)
class _Node:
    """What was seen of one node last."""

    life: str = "up"
    """`up`, `paused`, or how it ended."""
    broker_id: int | None = None
    role: str = "none"
    """A broker's is `none`, `master` or `slave`; a controller's `follower` or `leader`."""
    epoch: int = 0
    """The master epoch of a broker's last role; the term of a controller."""
    members: tuple[int, ...] = ()
    """A master's SyncStateSet."""
    proposed: tuple[int, ...] | None = None
    lags: dict[int, int] = field(default_factory=dict)
    """Broker id -> place in LAGS, of the slaves that are connected to a master."""

    @property
    def is_up(self) -> bool:
        return self.life in ("up", "paused")

    def begin_life(self, life: str) -> None:
        """Or end it: nothing of what it was doing goes on; what it has on its disk stays."""
        self.life, self.role = life, "none"
        self.forget_mastership()

    def forget_mastership(self) -> None:
        self.members, self.proposed = (), None
        self.lags.clear()


@dataclass(frozen=True, slots=True)
class _Agreed:
    index: int
    """Its index in the controllers' log."""
    master_epoch: int
    members: tuple[int, ...]


class RocketmqWatch:
    """`Watch` of the harness."""

    def __init__(self, settings: RocketmqSettings) -> None:
        self._settings = settings
        groups = broker_groups(settings)
        self._groups = [{name: _Node(life="down") for name in group.brokers} for group in groups]
        self._names = [group.name for group in groups]
        self._agreed: dict[str, _Agreed] = {}
        """What the controllers have agreed on last, by the group's name; masters hear of it later."""
        self._controllers = {name: _Node(life="down") for name in controller_names(settings)}
        name_servers = {name: _Node(life="down") for name in lone_name_servers(settings)}
        self._nodes = {
            name: node for nodes in (*self._groups, self._controllers, name_servers) for name, node in nodes.items()
        }
        self._cuts: dict[tuple[str, str], None] = {}

    def saw(self, node: str, event: str, fields: Mapping[str, object]) -> None:
        seen = self._nodes.get(node)
        handle = _HANDLERS.get(event)
        if handle is not None and seen is not None:
            handle(self, node, seen, fields)

    def roles(self) -> Mapping[str, tuple[str, ...]]:
        roles: dict[str, tuple[str, ...]] = {}
        active = self._newest(self._controllers, "leader")
        primaries = [
            (brokers, self._newest(brokers, "master"), self._agreed.get(name))
            for name, brokers in zip(self._names, self._groups, strict=True)
        ]
        dispensable: list[str] = []
        if active is not None:
            roles["active-controller"] = (active,)
            if self._settings.controllers >= QUORUM_OF_THREE:
                dispensable.append(active)
        for brokers, primary, agreed in primaries:
            if primary is not None:
                roles["primary"] = (*roles.get("primary", ()), primary)
                dispensable += self._dispensable_broker(brokers, primary, agreed)
        if dispensable:
            roles["dispensable"] = tuple(dispensable)
        return roles

    def state(self) -> tuple[str, ...]:
        masters = [self._master(brokers) for brokers in self._groups]
        words = [
            word
            for brokers, master in zip(self._groups, masters, strict=True)
            for word in sorted(self._broker_word(node, brokers, master) for node in brokers.values())
        ]
        controllers = sorted(_word(node, self._controllers) for node in self._controllers.values())
        cuts = {
            f"cut {self._nodes[source].role}>{self._nodes[target].role}"
            for source, target in self._cuts
            if source in self._nodes and target in self._nodes
        }
        sets = [word for master in masters for word in _set_words(master)]
        return (*words, *controllers, *sets, *sorted(cuts))

    def _master(self, brokers: Mapping[str, _Node]) -> _Node | None:
        primary = self._newest(brokers, "master")
        return None if primary is None else brokers[primary]

    def _broker_word(self, node: _Node, brokers: Mapping[str, _Node], master: _Node | None) -> str:
        word = _word(node, brokers)
        if master is None or node.broker_id is None or node is master:
            return word
        member = "member" if node.broker_id in master.members else "outside"
        lag = master.lags.get(node.broker_id)
        return f"{word} {member} {'apart' if lag is None else LAGS[lag]}"

    def _newest(self, nodes: Mapping[str, _Node], role: str) -> str | None:
        """The living node that took the role under the newest epoch or term."""
        playing = [name for name, node in nodes.items() if node.role == role and node.is_up]
        return max(playing, key=lambda name: nodes[name].epoch, default=None)

    def _dispensable_broker(
        self, brokers: Mapping[str, _Node], primary: str, agreed: _Agreed | None
    ) -> tuple[str, ...]:
        """A broker without which the group must go on: the master, where another member of the SyncStateSet lives; a
        configured master never, but of its slaves one more than it waits for. While the controllers have elected
        another one that does not know it yet, nobody whom they count as in sync."""
        settings, master = self._settings, self._nodes[primary]
        if settings.lasting_voters - 1 < settings.needed_replicas:
            return ()
        others = {name: node for name, node in brokers.items() if name != primary}
        if not settings.has_controllers:
            return tuple(name for name, node in others.items() if node.is_up)[-1:]
        is_elected = agreed is None or agreed.master_epoch <= master.epoch
        members = master.members if agreed is None else agreed.members
        if is_elected and any(node.is_up and node.broker_id in members for node in others.values()):
            return (primary,)
        replaced = brokers if not is_elected else others
        return tuple(name for name, node in replaced.items() if node.broker_id not in members)[:1]

    # What was seen ----------------------------------------------------------------------------------------------

    def _booted(self, name: str, node: _Node, fields: Mapping[str, Any]) -> None:
        node.begin_life("up")
        if name in self._controllers:
            node.role = "follower"

    def _ended(self, name: str, node: _Node, fields: Mapping[str, Any]) -> None:
        node.begin_life("panicked" if fields["how"] == "panicked" else "down")

    def _paused(self, name: str, node: _Node, fields: Mapping[str, Any]) -> None:
        node.life = "paused"

    def _resumed(self, name: str, node: _Node, fields: Mapping[str, Any]) -> None:
        node.life = "up"

    def _cut(self, name: str, node: _Node, fields: Mapping[str, Any]) -> None:
        self._cuts[name, fields["to"]] = None

    def _healed(self, name: str, node: _Node, fields: Mapping[str, Any]) -> None:
        self._cuts.pop((name, fields["to"]), None)

    def _identity(self, name: str, node: _Node, fields: Mapping[str, Any]) -> None:
        node.broker_id = fields["broker_id"]

    def _role(self, name: str, node: _Node, fields: Mapping[str, Any]) -> None:
        node.role, node.epoch = fields["role"], fields["master_epoch"]

    def _masterless(self, name: str, node: _Node, fields: Mapping[str, Any]) -> None:
        node.role, node.epoch = "none", fields["master_epoch"]

    def _deposed(self, name: str, node: _Node, fields: Mapping[str, Any]) -> None:
        node.role = "none"
        node.forget_mastership()

    def _sync_state_set(self, name: str, node: _Node, fields: Mapping[str, Any]) -> None:
        node.members = tuple(fields["members"])

    def _set_agreed(self, name: str, node: _Node, fields: Mapping[str, Any]) -> None:
        before = self._agreed.get(fields["group"])
        if before is None or fields["index"] > before.index:
            self._agreed[fields["group"]] = _Agreed(fields["index"], fields["master_epoch"], tuple(fields["members"]))

    def _alter(self, name: str, node: _Node, fields: Mapping[str, Any]) -> None:
        proposed = fields["proposed"]
        node.proposed = None if proposed is None else tuple(proposed)

    def _slave_lag(self, name: str, node: _Node, fields: Mapping[str, Any]) -> None:
        node.lags[fields["broker_id"]] = fields["lag"]

    def _slave_gone(self, name: str, node: _Node, fields: Mapping[str, Any]) -> None:
        node.lags.pop(fields["broker_id"], None)

    def _term(self, name: str, node: _Node, fields: Mapping[str, Any]) -> None:
        node.epoch = fields["term"]

    def _leads(self, name: str, node: _Node, fields: Mapping[str, Any]) -> None:
        node.role, node.epoch = "leader", fields["term"]

    def _follows(self, name: str, node: _Node, fields: Mapping[str, Any]) -> None:
        node.role, node.epoch = "follower", fields["term"]


_HANDLERS = {
    BOOTED: RocketmqWatch._booted,
    ENDED: RocketmqWatch._ended,
    PAUSED: RocketmqWatch._paused,
    RESUMED: RocketmqWatch._resumed,
    CUT: RocketmqWatch._cut,
    HEALED: RocketmqWatch._healed,
    "identity": RocketmqWatch._identity,
    "role": RocketmqWatch._role,
    "masterless": RocketmqWatch._masterless,
    "deposed": RocketmqWatch._deposed,
    "sync_state_set": RocketmqWatch._sync_state_set,
    "set_agreed": RocketmqWatch._set_agreed,
    "alter": RocketmqWatch._alter,
    "slave_lag": RocketmqWatch._slave_lag,
    "slave_gone": RocketmqWatch._slave_gone,
    "term": RocketmqWatch._term,
    "leader": RocketmqWatch._leads,
    "follower": RocketmqWatch._follows,
}


def _word(node: _Node, peers: Mapping[str, _Node]) -> str:
    newest = max((peer.epoch for peer in peers.values()), default=0)
    behind = min(newest - node.epoch, FARTHEST)
    return f"{node.role if node.life == 'up' else f'{node.role}({node.life})'}-{behind}"


def _set_words(master: _Node | None) -> tuple[str, ...]:
    """How many are in the SyncStateSet, and what of it is open."""
    if master is None:
        return ("no master",)
    size = f"set {len(master.members)}"
    if master.proposed is None:
        return (size,)
    joins = set(master.proposed) - set(master.members)
    leaves = set(master.members) - set(master.proposed)
    return (size, " ".join(("alter", *(["grows"] if joins else []), *(["shrinks"] if leaves else []))))
