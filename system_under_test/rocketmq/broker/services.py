"""All that a broker does for its clients above its log, put together."""

from __future__ import annotations

from collections.abc import Callable

from system_under_test.remoting.codes import RequestCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.remoting.server import Peer
from system_under_test.rocketmq.broker.consuming.assignment import Assignments
from system_under_test.rocketmq.broker.consuming.consumer_progress import ConsumerProgress
from system_under_test.rocketmq.broker.consuming.membership import Membership
from system_under_test.rocketmq.broker.consuming.offset_reset import OffsetReset
from system_under_test.rocketmq.broker.consuming.pulling import Pulls
from system_under_test.rocketmq.broker.consuming.replicas import Replicas
from system_under_test.rocketmq.broker.context import BrokerContext
from system_under_test.rocketmq.broker.delayed.delay_placement import WaitingRooms
from system_under_test.rocketmq.broker.delayed.delay_service import DelayService
from system_under_test.rocketmq.broker.delayed.timer_service import TimerService
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.broker.pop.popping import Pops
from system_under_test.rocketmq.broker.querying import Queries
from system_under_test.rocketmq.broker.request_handler import Answer, Handlers
from system_under_test.rocketmq.broker.role import Roles
from system_under_test.rocketmq.broker.sending import Sends
from system_under_test.rocketmq.broker.topics.logic_queues import LogicQueues
from system_under_test.rocketmq.broker.topics.topic_routes import TopicRoutes
from system_under_test.rocketmq.broker.transactions.producers import Producers
from system_under_test.runtime.places import Places


class Services:
    """`handlers` answers requests; some of the parts have tasks of their own, while the broker is master or always.

    `own_address` is the one that NameServers tell; `places` are those of requests at work; `on_topics` is called when
    the topics have changed.
    """

    def __init__(
        self,
        broker: BrokerContext,
        parts: BrokerParts,
        roles: Roles,
        own_address: str,
        places: Places,
        on_topics: Callable[[], None],
    ) -> None:
        host, store, config, ha = broker.host, broker.store, broker.config, broker.ha
        self._ha = ha
        self._on_topics = on_topics
        puts = parts.puts(host, store, config)
        self.put_rate = puts.rate
        self.static = parts.static_topics(broker, puts, parts.accept_mapping, self._topics_changed)
        administration = parts.administration(broker, self.static, self._topics_changed)
        progress = ConsumerProgress(store, ha, administration, parts.known_progress)
        deliveries, waiting = parts.deliveries(broker, puts), WaitingRooms(host, config)
        self._producers = Producers(host)
        transactions = parts.transactions(broker, puts, deliveries, waiting, self._producers)
        self._while_master = (
            DelayService(broker, deliveries, parts.delay_level),
            TimerService(broker, deliveries, parts.timer_place, parts.timer_turning),
            transactions,
        )
        self._pulls = Pulls(broker, administration, progress, places, parts.committed_by_pull, lambda: roles.role_id)
        self._pops = Pops(broker, administration, places, parts.pop_service)
        members = parts.group_members()
        self._membership = Membership(broker, administration, members)
        self._pulls.subscription_of = self._membership.wanted
        self._routes = TopicRoutes(host, config)
        locks = parts.queue_locks(config.lock_lives_s)
        self._locking = parts.locking(broker, locks, Replicas(host, config, own_address))
        sends = Sends(broker, puts, waiting, transactions, administration, self.static, parts.admission)
        ordinary: Handlers = {
            **administration.handlers,
            **self.static.handlers,
            **sends.handlers,
            **parts.returned_messages(broker, administration, puts, waiting, parts.what_becomes_of).handlers,
            **self._pulls.handlers,
            **self._pops.handlers,
            **progress.handlers,
            **OffsetReset(broker, administration, progress, members).handlers,
            **self._locking.handlers,
            **Assignments(config, broker.tables, members, self._routes, parts.assign).handlers,
            **Queries(store, administration).handlers,
            **transactions.handlers,
            **self._membership.handlers,
            RequestCode.HEART_BEAT: self._heartbeat,
            RequestCode.UNREGISTER_CLIENT: self._unregister,
        }
        self.handlers = LogicQueues(self.static, config.group).handlers(ordinary)

    def start(self) -> None:
        self._membership.start()

    def role_taken(self) -> None:
        mastership = self._ha.mastership
        if mastership is not None:
            for service in self._while_master:
                service.begin(mastership)
        self._pops.role_taken()

    def closed(self, peer: Peer) -> None:
        """A client's connection has ended."""
        self._producers.closed(peer)
        self._membership.closed(peer)

    def stop(self) -> None:
        """Before the log is closed."""
        self._pops.stop()
        self._membership.stop()
        self._routes.close()
        self._locking.stop()

    def _heartbeat(self, command: RemotingCommand, peer: Peer) -> Answer:
        """Of a client that may be producer and consumer at once. Raises RemotingError."""
        self._producers.heard(command.body, peer)
        return self._membership.heartbeat(command, peer)

    def _unregister(self, command: RemotingCommand, peer: Peer) -> Answer:
        self._producers.unregister(command)
        return self._membership.unregister(command)

    def _topics_changed(self) -> None:
        """Pulls that wait look once more: their topic may be gone."""
        self._pulls.look_again()
        self._on_topics()
