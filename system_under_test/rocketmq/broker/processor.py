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
from system_under_test.rocketmq.broker.ha.replication import Replication
from system_under_test.rocketmq.broker.pulling import Pulls
from system_under_test.rocketmq.broker.request_handler import Answer, Handlers
from system_under_test.rocketmq.broker.role import Roles
from system_under_test.rocketmq.broker.sending import Sends
from system_under_test.rocketmq.broker.tables import Tables
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
        ha: Replication,
        roles: Roles,
        *,
        on_topics: Callable[[], None],
    ) -> None:
        self._store = store
        self._config = config
        self._roles = roles
        self._on_topics = on_topics
        administration = Administration(host, store, tables, ha, self._topics_changed)
        progress = ConsumerProgress(store, ha, administration)
        self._pulls = Pulls(host, store, tables.groups, config, ha, administration, progress)
        self._handlers: Handlers = {
            **administration.handlers,
            **Sends(host, store, config, ha, administration).handlers,
            **self._pulls.handlers,
            **progress.handlers,
            **roles.handlers,
            RequestCode.GET_BROKER_EPOCH_CACHE: lambda command, _: self._epochs(),
            RequestCode.HEART_BEAT: lambda command, _: RemotingCommand.response(ResponseCode.SUCCESS),
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
            "brokerId": self._roles.broker_id,
            "epochList": [{"epoch": entry.master_epoch, "startOffset": entry.start_offset} for entry in entries],
            "maxOffset": self._store.max_offset,
            "confirmOffset": self._store.confirm_offset,
        }
        return RemotingCommand.response(ResponseCode.SUCCESS, body=json.dumps(body).encode())
