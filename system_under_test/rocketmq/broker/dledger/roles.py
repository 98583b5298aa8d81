"""Roles as the DLedger group elects them: its leader is the master, all others are slaves, a candidate among them.

A leader becomes master once all that its log holds is committed, the first entry of its own term with it, and shown:
then where each queue goes on is counted anew from the log. It is master no more in the very step in which it ceases to
lead, or begins to hand over: nothing is written any more, puts that wait end without certainty, and consumers see what
is committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from system_under_test.dledger.entry import NOTHING
from system_under_test.dledger.event import Effects
from system_under_test.rocketmq.broker.context import BrokerContext
from system_under_test.rocketmq.broker.dledger.group import DledgerGroup
from system_under_test.rocketmq.broker.dledger.mastership import DledgerMastership
from system_under_test.rocketmq.broker.ha.slave_sync import SlaveSync
from system_under_test.rocketmq.broker.request_handler import Handlers
from system_under_test.rocketmq.broker.role import Role


class _Part(NamedTuple):
    """What this member does in its group; without a leader terms are no matter."""

    term: int | None
    leader: str | None
    takes_appends: bool


class DledgerRoles:
    """`Roles` of a broker whose log a DLedger group replicates; `on_role` is called after each role taken."""

    def __init__(self, broker: BrokerContext, group: DledgerGroup, *, on_role: Callable[[], None]) -> None:
        self.role = Role.NONE
        self.handlers: Handlers = {}
        self.acted_master_epoch = 0
        self._host, self._store, self._config, self._tables = broker.host, broker.store, broker.config, broker.tables
        self._group = group
        self._member = group.member
        self._on_role = on_role
        self._part: _Part | None = None
        self._acted: _Part | None = None
        """What the role follows from; None since the part became another one."""
        self._last_index = self._committed = NOTHING
        """Of the log, and what of it is shown, as the last step left them."""
        self._changed = asyncio.Event()
        """The part is another one, or more is committed."""
        self._sync: SlaveSync | None = None
        self._log_in_hand = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._member.on_step.append(self._stepped)

    @property
    def broker_id(self) -> int:
        return self._config.dledger.broker_id

    @property
    def role_id(self) -> int:
        return 0 if self.role is Role.MASTER else self.broker_id

    def start(self) -> None:
        self._last_index = self._group.log.last_index
        self._show_committed()
        self._host.log("identity", group=self._config.group, broker_id=self.broker_id)
        self._task = self._host.spawn(self._take_part(), "roles in the group")

    async def stop(self) -> None:
        async with self._log_in_hand:
            if self._task is not None:
                self._task.cancel()
            self._end_mastership()
            await self._end_copying()

    # -- in the member's step

    def _stepped(self, effects: Effects) -> None:
        log = self._group.log
        if effects.kept is not None:
            if effects.kept < self._last_index:
                self._store.log_was_cut(log.offset_behind(effects.kept))
            self._last_index = log.last_index
        if self._member.committed != self._committed:
            self._show_committed()
        member = self._member
        part = _Part(None if member.leader is None else member.term, member.leader, member.takes_appends)
        if part != self._part:
            self._part, self._acted = part, None
            self._end_mastership()
            self._changed.set()

    def _show_committed(self) -> None:
        self._committed = self._member.committed
        offset = self._group.log.offset_behind(self._committed)
        self._store.advance_confirm_offset(offset)
        if self._group.mastership is not None:
            self._group.mastership.committed(offset)
        self._changed.set()

    def _end_mastership(self) -> None:
        mastership, self._group.mastership = self._group.mastership, None
        if mastership is not None:
            self._report(Role.SLAVE)
            mastership.end()

    # -- afterwards

    async def _take_part(self) -> None:
        self.role = Role.SLAVE
        self._on_role()
        await self._member.start()
        while True:
            await self._changed.wait()
            self._changed.clear()
            part = self._part
            if part is None or part == self._acted:
                continue
            async with self._log_in_hand:
                if part.takes_appends:
                    if self._group.log.is_all_committed and await self._become_master(part):
                        self._acted = part
                else:
                    await self._become_slave(part)
                    self._acted = part

    async def _become_master(self, part: _Part) -> bool:
        """Whether it still is to be."""
        assert part.term is not None
        await self._end_copying()
        store = self._store
        self._host.reached("leader-about-to-serve")
        await store.forget_nothing_beyond_the_end()
        store.rebuild_queue_offset_table()
        await self._tables.keep_topics_with_messages(store, part.term)
        if part != self._part:
            return False
        self._group.mastership = DledgerMastership(self._member, self._group.max_pending, store.confirm_offset)
        self.acted_master_epoch = part.term
        self._report(Role.MASTER)
        self._host.reached("leader-serves")
        self._on_role()
        return True

    async def _become_slave(self, part: _Part) -> None:
        await self._end_copying()
        leader, term = part.leader, part.term
        if leader is not None and term is not None and leader != self._group.node:
            master = self._group.address_of(leader)
            self._sync = SlaveSync(self._host, self._config, self._store, self._tables, master, term)
            self._sync.start()
            self.acted_master_epoch = term
            self._report(Role.SLAVE)
        self._host.reached("follower-serves")
        self._on_role()

    async def _end_copying(self) -> None:
        if self._sync is not None:
            await self._sync.stop()
            self._sync = None

    def _report(self, role: Role) -> None:
        self.role = role
        self._host.log(
            "role",
            group=self._config.group,
            role=role.value,
            master_epoch=self.acted_master_epoch,
            broker_id=self.broker_id,
            start_offset=None,
        )
