"""What holds of CMQ at every moment: in each group what holds of any Raft group, and what its queues promise.

A message is confirmed once a majority has it durably. Nodes that have applied the same entries have the same state, and
snapshots are that state. What is acknowledged is given out by nobody who was asked for messages after that, what a
consumer holds by nobody who leads since it was given out, and nothing by a leader that was followed by another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from harness.invariants import Breaches
from harness.record.meaning import Meaning
from harness.watch import ENDED
from system_under_test.cmq.config import group_name
from workloads.systems.raft_invariants import RAFT_INVARIANTS, RaftGroupInvariants

INVARIANTS: Mapping[str, Meaning] = {
    **RAFT_INVARIANTS,
    "early-confirm": Meaning(
        says="A message was about to be confirmed that no leader had applied.",
        usually="What is appended is taken for decided.",
    ),
    "unheld-message": Meaning(
        says="A message was about to be confirmed that a majority did not hold durably.",
        usually="A node answers before its log is synced, or lets go what it answered for.",
    ),
    "diverging-states": Meaning(
        says="Two nodes had applied the same entries, and had not the same messages and acknowledgements.",
        usually="A node changed its state by something else than the log, or by an entry twice.",
    ),
    "torn-snapshot": Meaning(
        says="A snapshot was not the state as it was when all up to its index was applied.",
        usually="What was copied is changed by entries that come later.",
    ),
    "given-again": Meaning(
        says="A message was given out to a consumer that asked after it had been acknowledged.",
        usually="Who answers does not lead any more, or the acknowledgement is not in the log.",
    ),
    "deposed-leader": Meaning(
        says="A leader gave a message out to a consumer that asked after another one led on in a newer term.",
        usually="It has not asked the others whether it still leads, or trusts for too long in what they said.",
    ),
    "given-while-held": Meaning(
        says="A leader gave a message out that it had given to a consumer whose time, by its own clock, was not up.",
        usually="It has forgotten who holds what, or counts the time from another moment.",
    ),
}


class CmqInvariants:
    """`Invariants` of the harness."""

    def __init__(self, groups: int, nodes: Iterable[str], invisible_ms: int, breaches: Breaches) -> None:
        nodes, names = tuple(nodes), [group_name(number) for number in range(1, groups + 1)]
        self._groups = [_GroupInvariants(name, nodes, invisible_ms, breaches) for name in names]
        self._by_name = {group.name: group for group in self._groups}

    def saw(self, node: str, event: str, fields: Mapping[str, Any]) -> None:
        if event == ENDED:
            for group in self._groups:
                group.saw(node, event, fields)
        elif (named := self._by_name.get(fields.get("group", fields.get("log")))) is not None:
            named.saw(node, event, fields)

    def observe(self, node: str, point: str, values: Mapping[str, int]) -> None:
        if "group" in values:
            self._groups[values["group"] - 1].observe(node, point, values)


class _GroupInvariants:
    def __init__(self, name: str, nodes: tuple[str, ...], invisible_ms: int, breaches: Breaches) -> None:
        self.name = name
        self._invisible_ns = invisible_ms * 1_000_000
        self._says = breaches.says
        self._raft = RaftGroupInvariants(name, nodes, breaches)
        self._states: dict[int, tuple[int, str]] = {}
        """Digest of the state by the index of the last entry applied, and who was first to report it."""
        self._applied: dict[tuple[int, int], int] = {}
        """(Queue, number) of the first message of an entry that a leader applied -> its index."""
        self._acknowledged: dict[tuple[int, int], int] = {}
        """(Queue, number) -> how many were acknowledged before."""
        self._asked: dict[tuple[str, int], tuple[int, int]] = {}
        """(Node, serial) of a pull -> how many were acknowledged when it was taken up, and the newest term then."""
        self._terms: dict[str, int] = {}
        """In which each node led last."""
        self._newest = 0
        """The newest term in which a leader was active."""
        self._holds: dict[str, dict[tuple[int, int], int]] = {node: {} for node in nodes}
        """Of each node since it leads: (queue, number) -> when it gave the message out last, by its own clock."""

    def saw(self, node: str, event: str, fields: Mapping[str, Any]) -> None:
        self._raft.saw(node, event, fields)
        if event in ("state", "snapshot", "restored"):
            self._has_state(node, event, int(fields["index"]), fields["digest"])
        elif event in ("leader", "follower"):
            self._holds[node].clear()
            if event == "leader":
                self._terms[node] = fields["term"]
        elif event == ENDED:
            self._holds[node].clear()
            self._asked = {pull: then for pull, then in self._asked.items() if pull[0] != node}

    def observe(self, node: str, point: str, values: Mapping[str, int]) -> None:
        self._raft.observe(node, point, values)
        handle = _POINTS.get(point)
        if handle is not None:
            handle(self, node, values)

    def _break(self, name: str, nodes: tuple[str, ...], because: str) -> None:
        self._says(name, nodes, f"in group {self.name} {because}")

    def _has_state(self, node: str, event: str, index: int, digest: int) -> None:
        known, first = self._states.setdefault(index, (digest, node))
        if known == digest:
            return
        if event == "snapshot":
            because = f"the snapshot of {node} at entry {index} is not the state that {first} had there"
            self._break("torn-snapshot", (node,), because)
        else:
            because = f"the states of {first} and {node} at entry {index} are not the same"
            self._break("diverging-states", (first, node), because)

    def _applies(self, node: str, values: Mapping[str, int]) -> None:
        self._applied[values["queue"], values["number"]] = values["index"]

    def _confirms(self, node: str, values: Mapping[str, int]) -> None:
        queue, number = values["queue"], values["number"]
        index = self._applied.get((queue, number))
        words = f"{node} was about to confirm message {number} of queue {queue}"
        if index is None:
            self._break("early-confirm", (node,), f"{words}, which no leader had applied")
        elif holders := self._raft.too_few(node, index):
            self._break("unheld-message", (node,), f"{words} at entry {index}, which {', '.join(holders)} had durably")

    def _acknowledges(self, node: str, values: Mapping[str, int]) -> None:
        self._acknowledged.setdefault((values["queue"], values["number"]), len(self._acknowledged))

    def _takes_up(self, node: str, values: Mapping[str, int]) -> None:
        self._asked[node, values["serial"]] = len(self._acknowledged), self._newest

    def _leads_on(self, node: str, values: Mapping[str, int]) -> None:
        """Its no-op is committed."""
        self._newest = max(self._newest, self._terms[node])

    def _gives_out(self, node: str, values: Mapping[str, int]) -> None:
        queue, number = values["queue"], values["number"]
        asked, newest = self._asked.get((node, values["serial"]), (0, 0))
        words = f"{node} gave out message {number} of queue {queue}"
        if self._acknowledged.get((queue, number), asked) < asked:
            self._break("given-again", (node,), f"{words}, which was acknowledged before it was asked")
        if newest > self._terms[node]:
            because = (
                f"{words} as the leader of term {self._terms[node]}, and was asked after one of term {newest} led on"
            )
            self._break("deposed-leader", (node,), because)
        before_ns, at_ns = self._holds[node].get((queue, number)), values["at_ns"]
        if before_ns is not None and at_ns < before_ns + self._invisible_ns:
            after_ms = (at_ns - before_ns) / 1e6
            self._break("given-while-held", (node,), f"{words} again after {after_ms:.1f} ms")
        self._holds[node][queue, number] = at_ns


_POINTS: Mapping[str, Callable[[_GroupInvariants, str, Mapping[str, int]], None]] = {
    "applied-not-confirmed": _GroupInvariants._applies,
    "about-to-confirm": _GroupInvariants._confirms,
    "ack-applied-not-answered": _GroupInvariants._acknowledges,
    "noop-committed": _GroupInvariants._leads_on,
    "pull-taken-up": _GroupInvariants._takes_up,
    "gave-out": _GroupInvariants._gives_out,
}
