"""The decisions of a broker that a planted bug may replace; the defaults are the healthy ones."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from system_under_test.dledger.parts import MemberParts
from system_under_test.remoting.client import RemotingClient
from system_under_test.rocketmq.broker.admission import Admission
from system_under_test.rocketmq.broker.classic.log_comparison import end_in_common
from system_under_test.rocketmq.broker.classic.mastership import ClassicMastership
from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.broker.consuming.assignment import Assign, assigned
from system_under_test.rocketmq.broker.consuming.group_members import GroupMembers
from system_under_test.rocketmq.broker.consuming.locking import Locking
from system_under_test.rocketmq.broker.consuming.queue_locks import QueueLocks
from system_under_test.rocketmq.broker.consuming.retries import WhatBecomes, what_becomes_of
from system_under_test.rocketmq.broker.consuming.returned_messages import ReturnedMessages
from system_under_test.rocketmq.broker.delayed.delay_service import DelayLevel
from system_under_test.rocketmq.broker.delayed.delivery import Deliveries
from system_under_test.rocketmq.broker.delayed.timer_service import Turning
from system_under_test.rocketmq.broker.ha.appender import Appender, AppendThenAck
from system_under_test.rocketmq.broker.ha.confirm_offset import slave_confirm_offset
from system_under_test.rocketmq.broker.ha.master_connection import batch_end, holds_a_part, is_possible_ack
from system_under_test.rocketmq.broker.ha.mastership import Mastership
from system_under_test.rocketmq.broker.ha.sync_state_set import SetView, begin_alter
from system_under_test.rocketmq.broker.pop.service import PopService
from system_under_test.rocketmq.broker.putting import Puts
from system_under_test.rocketmq.broker.topics.administration import Administration
from system_under_test.rocketmq.broker.topics.static_topics import Accept, StaticTopics
from system_under_test.rocketmq.broker.transactions.service import Transactions
from system_under_test.rocketmq.controller.protocol import ReplicaInfo, SyncStateSet
from system_under_test.rocketmq.message_protocol import PullRequest
from system_under_test.rocketmq.static_topic.acceptance import accepted
from system_under_test.runtime.host import Host
from system_under_test.runtime.places import Places
from system_under_test.storage.epoch_file import EpochEntry, EpochFile, EpochMap, truncation_point
from system_under_test.storage.message_store import FlushMode, MessageStore, StorageParts
from system_under_test.storage.timer_wheel import Place, place


def own_acked_offset(store: MessageStore, config: BrokerConfig) -> int:
    """How far the master itself counts as having acked.

    Under sync flush nothing is confirmed before the master has it durably: a consumer that read a message
    which a loss of power then takes from its only holder has read what never was.
    """
    return store.flushed_offset if config.flush_mode is FlushMode.SYNC else store.max_offset


class Acted(NamedTuple):
    """The announcement that a broker acted upon last since the start of its process."""

    master_epoch: int
    master_id: int | None


def role_is_due(acted: Acted, info: ReplicaInfo, is_master: bool) -> bool:
    """Whether the role that `info` announces is to be taken by a broker that last acted on `acted`."""
    newly_named = info.master_epoch == acted.master_epoch and acted.master_id is None and info.master_id is not None
    return newly_named or info.master_epoch > acted.master_epoch


def supersedes(newest: ReplicaInfo, info: ReplicaInfo) -> bool:
    """Whether what is known by now makes the role that `info` announced void."""
    return newest.master_epoch > info.master_epoch


def role_id(broker_id: int | None, is_master: bool) -> int | None:
    """What NameServers and clients call this broker: 0 for the master, the controller's id for a slave."""
    return 0 if is_master else broker_id


def turns_to_new_master(hears_former: bool) -> bool:
    """Whether a slave that hears of another master leaves the one it follows, which may be serving it still."""
    return True


async def cut_before_following(store: MessageStore) -> None:
    """Bring the log into the state in which a slave may shake hands: it ends with a whole message."""
    await store.cut_to_message_boundary()


def gives_up(unclean_start: bool, master_epoch: int, registered_master_epoch: int) -> bool:
    """Whether a broker that is master of `master_epoch` must not serve as such: the epoch is from before its start,
    when `registered_master_epoch` was the newest, and its log may have lost what it acked in it."""
    return unclean_start and master_epoch <= registered_master_epoch


async def enter_epoch(host: Host, epochs: EpochFile, master_epoch: int, start_offset: int) -> EpochEntry:
    """Record, durably, that the own log goes on under this epoch from `start_offset` on, unless it does already.

    Returns the entry that the master's bytes belong to.
    """
    newest = epochs.map.last
    if newest is None or newest.master_epoch < master_epoch:
        host.reached("about-to-persist-epoch")
        await epochs.append(master_epoch, start_offset)
        host.reached("epoch-persisted", epoch=master_epoch, start=start_offset)
        newest = epochs.map.last
    assert newest is not None and newest.master_epoch == master_epoch
    return newest


def first_view(own_id: int, announced: SyncStateSet) -> SetView:
    """With which set a master begins: with what the controller last said."""
    return SetView(confirmed=announced)


def committed_by_pull(request: PullRequest, next_offset: int) -> int | None:
    """How far a group has come as a pull says, whose answer ends before `next_offset`; None where it says nothing."""
    return request.commit_offset


def known_progress(committed: int | None, end: int) -> int | None:
    """How far a group is said to have come in a queue that ends there; None where nobody knows."""
    return committed


@dataclass(frozen=True, kw_only=True)
class BrokerParts:
    storage: StorageParts = field(default_factory=StorageParts)
    own_acked_offset: Callable[[MessageStore, BrokerConfig], int] = own_acked_offset
    truncation_point: Callable[[EpochMap, int, EpochMap, int], int | None] = truncation_point
    first_view: Callable[[int, SyncStateSet], SetView] = first_view
    begin_alter: Callable[[SetView, tuple[int, ...]], SetView] = begin_alter
    role_id: Callable[[int | None, bool], int | None] = role_id
    turns_to_new_master: Callable[[bool], bool] = turns_to_new_master
    cut_before_following: Callable[[MessageStore], Awaitable[None]] = cut_before_following
    role_is_due: Callable[[Acted, ReplicaInfo, bool], bool] = role_is_due
    supersedes: Callable[[ReplicaInfo, ReplicaInfo], bool] = supersedes
    gives_up: Callable[[bool, int, int], bool] = gives_up
    enter_epoch: Callable[[Host, EpochFile, int, int], Awaitable[EpochEntry]] = enter_epoch
    batch_end: Callable[[Sequence[EpochEntry], int, int], int] = batch_end
    holds_a_part: Callable[[int, int], bool] = holds_a_part
    is_possible_ack: Callable[[int, int, int], bool] = is_possible_ack
    slave_confirm_offset: Callable[[int, int, int], int] = slave_confirm_offset
    appender: Callable[[Host, MessageStore, BrokerConfig], Appender] = AppendThenAck
    mastership: type[Mastership] = Mastership
    delay_level: type[DelayLevel] = DelayLevel
    timer_place: Place = place
    timer_turning: type[Turning] = Turning
    transactions: type[Transactions] = Transactions
    pop_service: type[PopService] = PopService
    group_members: type[GroupMembers] = GroupMembers
    queue_locks: type[QueueLocks] = QueueLocks
    assign: Assign = assigned
    locking: type[Locking] = Locking
    administration: type[Administration] = Administration
    what_becomes_of: WhatBecomes = what_becomes_of
    returned_messages: type[ReturnedMessages] = ReturnedMessages
    admission: Admission = field(default_factory=Admission)
    puts: type[Puts] = Puts
    places: type[Places] = Places
    deliveries: type[Deliveries] = Deliveries
    end_in_common: Callable[[MessageStore, RemotingClient, str, float], Awaitable[int | None]] = end_in_common
    classic_mastership: type[ClassicMastership] = ClassicMastership
    committed_by_pull: Callable[[PullRequest, int], int | None] = committed_by_pull
    known_progress: Callable[[int | None, int], int | None] = known_progress
    static_topics: type[StaticTopics] = StaticTopics
    accept_mapping: Accept = accepted
    member: MemberParts = field(default_factory=MemberParts)
    """A broker whose log a group of DLedger replicates is a member of it, made of these."""
