"""What RocketMQ's nodes report, in words for people: who took itself for what, and who was elected by whom."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from harness.narrator import Phrase

Fields = Mapping[str, Any]
ROUTINE = frozenset({"slave_lag", "follower_lag", "written", "term", "ha_state"})
"""Told of by the other events around them, or too often."""


class RocketmqNarrator:
    """`Narrator` of the harness. Brokers are called by their nodes' names as soon as these said which id they have."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, int], str] = {}
        """(Group, id) -> node."""
        self._groups: dict[str, str] = {}
        """Broker -> its group."""
        self._group = ""
        """Of which the event tells."""

    def narrate(self, node: str, event: str, fields: Fields) -> Phrase | None:
        if event == "identity":
            self._groups[node] = str(fields.get("group"))
            self._names[self._groups[node], fields.get("broker_id", -1)] = node
        self._group = str(fields.get("group") or self._groups.get(node, ""))
        tell = _TOLD.get(event)
        if tell is not None:
            return tell(self, fields)
        if event in ROUTINE:
            return None
        given = ", ".join(f"{name} {value}" for name, value in fields.items())
        return Phrase(label=event.replace("_", " "), sentence=f"reported {event} ({given})"[:200], weight=2)

    def _name(self, broker_id: Any) -> str:
        return "nobody" if broker_id is None else self._names.get((self._group, broker_id), f"broker {broker_id}")

    def _set(self, members: Any) -> str:
        return ", ".join(self._name(member) for member in members or ()) or "nobody"

    def _identity(self, fields: Fields) -> Phrase:
        number = fields.get("broker_id")
        return Phrase(label=f"is broker {number}", sentence=f"knew itself as broker {number}", weight=2)

    def _role(self, fields: Fields) -> Phrase:
        role, epoch = fields.get("role"), fields.get("master_epoch")
        if not epoch:
            return Phrase(label=f"{role}, configured", sentence=f"began as the configured {role}", weight=4)
        if role == "master":
            start = fields.get("start_offset")
            begins = "" if start is None else f", whose log begins at byte {start}"
            sentence = f"took itself for the master under epoch {epoch}{begins}"
        else:
            sentence = f"took itself for a {role} under epoch {epoch}"
        return Phrase(label=f"{role}, epoch {epoch}", sentence=sentence, weight=8)

    def _elected(self, fields: Fields) -> Phrase:
        master, epoch = self._name(fields.get("master")), fields.get("master_epoch")
        in_sync = self._set(fields.get("in_sync"))
        sentence = f"had {master} elected master under epoch {epoch}; in sync, as far as it knew: {in_sync}"
        return Phrase(label=f"elects {master}, epoch {epoch}", sentence=sentence, weight=9)

    def _leader(self, fields: Fields) -> Phrase:
        term = fields.get("term")
        return Phrase(label=f"leads, term {term}", sentence=f"led the controllers in term {term}", weight=6)

    def _follower(self, fields: Fields) -> Phrase:
        term = fields.get("term")
        return Phrase(label=f"leads no more, term {term}", sentence=f"no longer led, in term {term}", weight=6)

    def _sync_state_set(self, fields: Fields) -> Phrase:
        members = self._set(fields.get("members"))
        sentence = f"believed these in sync, as of epoch {fields.get('epoch')} of the SyncStateSet: {members}"
        return Phrase(label=f"in sync: {members}", sentence=sentence, weight=5)

    def _alter(self, fields: Fields) -> Phrase | None:
        proposed = fields.get("proposed")
        if proposed is None:
            return None
        members = self._set(proposed)
        return Phrase(label=f"proposes {members}", sentence=f"proposed that these be in sync: {members}", weight=5)

    def _alter_failed(self, fields: Fields) -> Phrase:
        wanted = self._set(fields.get("wanted"))
        reason = fields.get("reason")
        return Phrase(label="proposal failed", sentence=f"failed to make {wanted} the SyncStateSet: {reason}", weight=4)

    def _confirmed(self, fields: Fields) -> Phrase:
        offset, epoch = fields.get("offset"), fields.get("master_epoch")
        sentence = f"believed all before byte {offset} to be safe, under epoch {epoch}"
        return Phrase(label=f"safe up to {offset}", sentence=sentence, weight=3)

    def _truncated(self, fields: Fields) -> Phrase:
        to, from_ = fields.get("to"), fields.get("from_")
        return Phrase(label=f"cuts its log at {to}", sentence=f"cut its log from byte {from_} back to {to}", weight=9)

    def _deleted(self, fields: Fields) -> Phrase:
        to, why = fields.get("to"), "for want of room" if fields.get("forced") else "as it had expired"
        return Phrase(label=f"deletes up to {to}", sentence=f"deleted its log before byte {to} {why}", weight=4)

    def _begun(self, fields: Fields) -> Phrase:
        at = fields.get("at")
        what = "part" if fields.get("is_part") else "all that is left"
        return Phrase(
            label=f"begins at {at}", sentence=f"began to copy its master's log at byte {at}, {what}", weight=6
        )

    def _copied_anew(self, fields: Fields) -> Phrase:
        end, begin = fields.get("end"), fields.get("begin")
        sentence = f"emptied its log, which ended at byte {end}: its master had deleted all before byte {begin}"
        return Phrase(label="copies anew", sentence=sentence, weight=8)

    def _recovered(self, fields: Fields) -> Phrase:
        end = fields.get("end")
        return Phrase(
            label=f"log ends at {end}", sentence=f"found its log to end at byte {end} when it started", weight=7
        )

    def _deposed(self, fields: Fields) -> Phrase:
        epoch = fields.get("master_epoch")
        return Phrase(label=f"deposed, epoch {epoch}", sentence=f"was master under epoch {epoch} no longer", weight=7)

    def _given_up(self, fields: Fields) -> Phrase:
        epoch = fields.get("master_epoch")
        return Phrase(label="gives mastership up", sentence=f"gave up being master under epoch {epoch}", weight=7)

    def _masterless(self, fields: Fields) -> Phrase:
        epoch = fields.get("master_epoch")
        return Phrase(label="knows no master", sentence=f"knew of no master after epoch {epoch}", weight=6)

    def _slave_gone(self, fields: Fields) -> Phrase:
        slave = self._name(fields.get("broker_id"))
        return Phrase(label=f"{slave} is gone", sentence=f"lost its connection with the slave {slave}", weight=4)

    def _follower_ahead(self, fields: Fields) -> Phrase:
        own, theirs = fields.get("own_end"), fields.get("follower_end")
        sentence = f"turned a slave away whose log ends at byte {theirs}, as its own ends at {own}"
        return Phrase(label="slave is ahead", sentence=sentence, weight=8)

    def _set_aside(self, fields: Fields) -> Phrase:
        start, end = fields.get("start"), fields.get("end")
        sentence = f"kept beside its log what its master lacks, bytes {start} to {end}, and is about to cut it there"
        return Phrase(label=f"sets aside {start} to {end}", sentence=sentence, weight=9)

    def _mapped(self, fields: Fields) -> Phrase:
        sentence = f"wrote down where the queues of static topic {fields.get('topic')} are"
        return Phrase(label=f"maps {fields.get('topic')}", sentence=sentence, weight=6)

    def _repair(self, fields: Fields) -> Phrase:
        sentence = f"left its log as it is, for a human to decide: {fields.get('reason')}"
        return Phrase(label="parted from its master", sentence=sentence[:200], weight=9)

    def _running(self, fields: Fields) -> Phrase:
        return Phrase(label="runs", sentence="had started", weight=2)

    def _panic(self, fields: Fields) -> Phrase:
        return Phrase(label="panics", sentence="ended of itself: a panic", weight=10)


_TOLD: Mapping[str, Callable[[RocketmqNarrator, Fields], Phrase | None]] = {
    "identity": RocketmqNarrator._identity,
    "role": RocketmqNarrator._role,
    "elected": RocketmqNarrator._elected,
    "leader": RocketmqNarrator._leader,
    "follower": RocketmqNarrator._follower,
    "sync_state_set": RocketmqNarrator._sync_state_set,
    "alter": RocketmqNarrator._alter,
    "alter_failed": RocketmqNarrator._alter_failed,
    "confirmed": RocketmqNarrator._confirmed,
    "truncated": RocketmqNarrator._truncated,
    "recovered": RocketmqNarrator._recovered,
    "deleted": RocketmqNarrator._deleted,
    "begun": RocketmqNarrator._begun,
    "copied_anew": RocketmqNarrator._copied_anew,
    "deposed": RocketmqNarrator._deposed,
    "mastership_given_up": RocketmqNarrator._given_up,
    "masterless": RocketmqNarrator._masterless,
    "slave_gone": RocketmqNarrator._slave_gone,
    "follower_ahead": RocketmqNarrator._follower_ahead,
    "set_aside": RocketmqNarrator._set_aside,
    "mapped": RocketmqNarrator._mapped,
    "manual_repair_needed": RocketmqNarrator._repair,
    "running": RocketmqNarrator._running,
    "panic": RocketmqNarrator._panic,
}
