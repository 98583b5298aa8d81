"""What the services of a broker stand on."""

from __future__ import annotations

from dataclasses import dataclass

from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.broker.ha.replication import Replication
from system_under_test.rocketmq.broker.topics.tables import Tables
from system_under_test.runtime.host import Host
from system_under_test.storage.message_store import MessageStore


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerContext:
    host: Host
    store: MessageStore
    config: BrokerConfig
    tables: Tables
    ha: Replication
