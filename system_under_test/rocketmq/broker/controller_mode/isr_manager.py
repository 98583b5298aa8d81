"""Keeps the SyncStateSet true while a mastership lasts: looks, proposes to the controller, takes over what it says.

A master that is a learner gives its mastership up once another member is in sync.

One Alter at a time, for members that leave or for one newcomer. From before it is sent until its outcome is known the
proposed must ack as well. When the reply is lost, GetReplicaInfo tells whether it has taken effect; where it has not,
it is withdrawn, for it may still be under way. Until one of the two has succeeded nothing else is proposed.
"""

from __future__ import annotations

from collections.abc import Callable

from system_under_test.remoting.client_error import ClientError
from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.broker.ha.mastership import Mastership
from system_under_test.rocketmq.broker.ha.sync_state_set import alter_refused, controller_says
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.client.controller_client import ControllerClient
from system_under_test.rocketmq.controller.protocol import ReplicaInfo
from system_under_test.runtime.host import Host


class SetKeeper:
    def __init__(
        self,
        host: Host,
        config: BrokerConfig,
        parts: BrokerParts,
        controllers: ControllerClient,
        observe: Callable[[ReplicaInfo], None],
    ) -> None:
        self._host = host
        self._config = config
        self._parts = parts
        self._controllers = controllers
        self._observe = observe

    async def keep(self, mastership: Mastership) -> None:
        """Until the mastership has ended."""
        clock = self._host.clock
        while not mastership.ended:
            try:
                await clock.within(self._config.check_sync_state_set_s, mastership.set_due.wait())
            except TimeoutError:
                self._host.reached("looked-at-the-set")
            mastership.set_due.clear()
            if self._config.async_learner and len(mastership.view.confirmed.members) > 1:
                await self._hand_over(mastership)
                continue
            wanted = mastership.wanted_members()
            if wanted is None:
                continue
            if not await self._alter(mastership, wanted):
                await clock.sleep(self._config.retry_s)
                await self._settle(mastership)
            # Others may have to leave, or to join.
            mastership.set_due.set()

    async def _hand_over(self, mastership: Mastership) -> None:
        """A master that came back as a learner is one for as long as it alone holds everything, and no longer."""
        self._host.log("learner_hands_over", master_epoch=mastership.master_epoch)
        try:
            self._observe(
                await self._controllers.give_up_mastership(
                    self._config.cluster, self._config.group, mastership.own_id, mastership.master_epoch
                )
            )
        except ClientError as error:
            self._host.log("mastership_kept", reason=str(error))

    async def _alter(self, mastership: Mastership, wanted: tuple[int, ...]) -> bool:
        """Whether the controller has confirmed `wanted`."""
        set_epoch = mastership.view.confirmed.epoch
        newcomers = set(wanted) - set(mastership.view.members)
        if newcomers:
            mastership.last_newcomer = min(newcomers)
            self._host.reached("expand-begins")
        else:
            leaving = set(mastership.view.members) - set(wanted)
            self._host.reached("shrink-begins", whole=sum(map(mastership.has_just_shown_all, sorted(leaving))))
        mastership.change_view(self._parts.begin_alter(mastership.view, wanted))
        self._host.reached("alter-proposed")
        try:
            answer = await self._controllers.alter_sync_state_set(
                self._config.group, mastership.own_id, mastership.master_epoch, wanted, set_epoch
            )
        except ClientError as error:
            self._host.reached("alter-refused" if error.definite else "alter-outcome-unknown")
            refused = error.code == "precondition-failed"
            self._host.log(
                "alter_failed", wanted=list(wanted), definite=error.definite, refused=refused, reason=str(error)
            )
            if error.definite and not mastership.ended:
                mastership.change_view(alter_refused(mastership.view))
            return False
        self._host.reached("alter-answered")
        if not mastership.ended:
            mastership.change_view(controller_says(mastership.view, answer))
            self._host.reached("alter-confirmed")
        return True

    async def _settle(self, mastership: Mastership) -> None:
        """Find out what holds, and see to it that no proposal is under way any more."""
        while not mastership.ended:
            try:
                info = await self._controllers.get_replica_info(self._config.group)
                self._observe(info)
                if not mastership.ended and info.master_epoch == mastership.master_epoch:
                    mastership.change_view(controller_says(mastership.view, info.sync_state_set))
                if mastership.ended or mastership.view.proposed is None:
                    return
                await self._withdraw(mastership)
            except ClientError as error:
                self._host.log("set_unsettled", reason=str(error))
                await self._host.clock.sleep(self._config.retry_s)

    async def _withdraw(self, mastership: Mastership) -> None:
        """Raises ClientError."""
        self._host.reached("alter-withdrawn")
        answer = await self._controllers.withdraw_alter(
            self._config.group, mastership.own_id, mastership.master_epoch, mastership.view.confirmed
        )
        if not mastership.ended:
            mastership.change_view(controller_says(mastership.view, answer))
