"""Finds who answers a request of a client, a controller or an administrator."""

from __future__ import annotations

import json
from collections.abc import Callable

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.remoting.server import Peer
from system_under_test.rocketmq.broker.administration import Administration
from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.broker.consumer_progress import ConsumerProgress
from system_under_test.rocketmq.broker.ha.service import HAService
from system_under_test.rocketmq.broker.locking import Locking
from system_under_test.rocketmq.broker.membership import Membership
from system_under_test.rocketmq.broker.offset_reset import OffsetReset
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.broker.pulling import Pulls
from system_under_test.rocketmq.broker.replicas_manager import ReplicasManager
from system_under_test.rocketmq.broker.request_handler import Answer, Handlers
from system_under_test.rocketmq.broker.returned_messages import ReturnedMessages
from system_under_test.rocketmq.broker.sending import Sends
from system_under_test.rocketmq.broker.tables import Tables
from system_under_test.rocketmq.controller.protocol import MalformedRequest, ReplicaInfo
from system_under_test.runtime.host import Host
from system_under_test.storage.message_store import MessageStore


class Processor:
    """`on_topics` is called when the topics have changed."""

    def __init__(
        self,
        host: Host,
        store: MessageStore,
        tables: Tables,
        config: BrokerConfig,
        ha: HAService,
        manager: ReplicasManager,
        parts: BrokerParts,
        *,
        on_topics: Callable[[], None],
    ) -> None:
        self._store = store
        self._config = config
        self._manager = manager
        self._on_topics = on_topics
        administration = Administration(host, store, tables, ha, self._topics_changed)
        progress = ConsumerProgress(store, ha, administration, parts.known_progress)
        sends = Sends(host, store, config, ha, administration)
        members = parts.group_members()
        self.membership = Membership(host, config, tables, ha, administration, members)
        locking = Locking(host, ha, parts.queue_locks(config.lock_lives_s))
        returned = ReturnedMessages(host, store, tables, ha, administration, sends, parts.what_becomes_of)
        reset = OffsetReset(store, config, ha, administration, progress, members)
        self._pulls = Pulls(host, store, tables.groups, config, ha, administration, progress, parts.committed_by_pull)
        self._handlers: Handlers = {
            **administration.handlers,
            **sends.handlers,
            **self._pulls.handlers,
            **progress.handlers,
            **self.membership.handlers,
            **locking.handlers,
            **returned.handlers,
            **reset.handlers,
            RequestCode.GET_BROKER_EPOCH_CACHE: lambda command, _: self._epochs(),
            RequestCode.NOTIFY_BROKER_ROLE_CHANGED: self._role_notice,
        }

    def handle(self, command: RemotingCommand, peer: Peer) -> Answer:
        """Raises RemotingError for whatever is wrong with the request."""
        for value in command.ext_fields.values():
            if type(value) is not str:
                raise RemotingError(ResponseCode.INVALID_PARAMETER, f"a header field is {value!r}, not text")
        handler = self._handlers.get(command.code)
        if handler is None:
            raise RemotingError(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, f"request code {command.code} not supported")
        return handler(command, peer)

    def _topics_changed(self) -> None:
        """Pulls that wait look once more: their topic may be gone."""
        self._pulls.look_again()
        self._on_topics()

    def _epochs(self) -> RemotingCommand:
        entries = self._store.epochs.map.entries
        body = {
            "clusterName": self._config.cluster,
            "brokerName": self._config.group,
            "brokerId": self._manager.broker_id,
            "epochList": [{"epoch": entry.master_epoch, "startOffset": entry.start_offset} for entry in entries],
            "maxOffset": self._store.max_offset,
            "confirmOffset": self._store.confirm_offset,
        }
        return RemotingCommand.response(ResponseCode.SUCCESS, body=json.dumps(body).encode())

    def _role_notice(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        try:
            info = ReplicaInfo.from_answer(command.ext_fields, command.body)
        except MalformedRequest as error:
            raise RemotingError(ResponseCode.INVALID_PARAMETER, str(error)) from error
        self._manager.notified(info)
        return RemotingCommand.response(ResponseCode.SUCCESS)
