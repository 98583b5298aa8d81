"""Which of RocketMQ's versions a node behaves as, where they differ in what they say to each other.

Brokers of version 4 know nothing of controllers; they register without the fields that version 5 has added.
NameServers of version 4 read none of these: of two brokers that claim one id the later one stays, topics of slaves
count for nothing, and a heartbeat between registrations is a request that they do not know.
"""

from __future__ import annotations

from enum import IntEnum

from system_under_test.node.settings import Settings, setting


class Version(IntEnum):
    V4 = 4
    V5 = 5


@setting
def behaves_as(settings: Settings, name: str) -> Version:
    value = settings.config.get(name, Version.V5.value)
    if type(value) is not int or value not in (4, 5):
        raise ValueError(f"{name}: expected 4 or 5, got {value!r}")
    return Version(value)
