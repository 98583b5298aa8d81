"""Which of RocketMQ's versions a node behaves as, where they differ in what they say to each other.

Brokers of version 4 know nothing of controllers; they register without the fields that version 5 has added.
NameServers of version 4 read none of these: of two brokers that claim one id the later one stays, topics of slaves
count for nothing, and a heartbeat between registrations is a request that they do not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any


class Version(IntEnum):
    V4 = 4
    V5 = 5

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Version:
        """By the setting `behavesAsVersion`. Raises ValueError."""
        value = config.get("behavesAsVersion", cls.V5.value)
        if type(value) is not int or value not in (4, 5):
            raise ValueError(f"behavesAsVersion: expected 4 or 5, got {value!r}")
        return cls(value)
