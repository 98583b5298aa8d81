"""Finds who answers a request of a client, a controller or an administrator."""

from __future__ import annotations

import json

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.remoting.server import Peer
from system_under_test.rocketmq.broker.context import BrokerContext
from system_under_test.rocketmq.broker.put_rate import PutRate
from system_under_test.rocketmq.broker.request_handler import Answer, Handlers
from system_under_test.rocketmq.broker.role import Roles
from system_under_test.rocketmq.broker.runtime_info import RuntimeInfo


class Processor:
    """`services` is who answers what the broker does for its clients; what it says of itself is answered here."""

    def __init__(self, broker: BrokerContext, roles: Roles, put_rate: PutRate, services: Handlers) -> None:
        self._store, self._config = broker.store, broker.config
        self._roles = roles
        self._handlers: Handlers = {
            **services,
            **RuntimeInfo(broker, roles, put_rate).handlers,
            RequestCode.GET_BROKER_EPOCH_CACHE: lambda command, _: self._epochs(),
            **roles.handlers,
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

    def _epochs(self) -> RemotingCommand:
        entries = self._store.epochs.map.entries
        ends = [*(entry.start_offset for entry in entries[1:]), self._store.max_offset]
        body = {
            "clusterName": self._config.cluster,
            "brokerName": self._config.group,
            "brokerId": self._roles.broker_id,
            "epochList": [
                {"epoch": entry.master_epoch, "startOffset": entry.start_offset, "endOffset": end}
                for entry, end in zip(entries, ends, strict=False)
            ],
            "maxOffset": self._store.max_offset,
            "confirmOffset": self._store.confirm_offset,
        }
        return RemotingCommand.response(ResponseCode.SUCCESS, body=json.dumps(body).encode())
