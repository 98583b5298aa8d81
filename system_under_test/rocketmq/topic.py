"""A topic as brokers keep it, NameServers show it and administrators ask for it; and which names there may be."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from system_under_test.storage.delay_progress import SCHEDULE_TOPIC as SCHEDULE_TOPIC
from system_under_test.storage.timer_progress import TIMER_TOPIC as TIMER_TOPIC

READ: Final = 4
WRITE: Final = 2
INHERIT: Final = 1
"""New topics may be made after this one."""
READ_WRITE: Final = READ | WRITE
_MAX_PERMISSION: Final = READ | WRITE | INHERIT

MAX_QUEUES: Final = 65536
MAX_NAME: Final = 127
MAX_TOPICS: Final = 10_000
"""How many topics one broker group may have: its registration has to fit a frame."""

DEFAULT_TOPIC: Final = "TBW102"
"""The one that topics are made after where autoCreateTopicEnable is on."""
HALF_TOPIC: Final = "RMQ_SYS_TRANS_HALF_TOPIC"
"""Where messages of transactions wait until these end."""
OP_TOPIC: Final = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
"""Which of them have ended."""
DISCARD_TOPIC: Final = "TRANS_CHECK_MAX_TIME_TOPIC"
"""Messages of transactions about which producers were asked in vain, as often as they are asked."""
STATIC_TOPIC: Final = "rmq_sys_static_topics"
"""Which groups of brokers lead the queues of static topics: a record a change."""
_INTERNAL_TOPICS: Final = frozenset({SCHEDULE_TOPIC, TIMER_TOPIC, HALF_TOPIC, OP_TOPIC, STATIC_TOPIC})
_SYSTEM_TOPICS: Final = frozenset(
    {
        DEFAULT_TOPIC,
        SCHEDULE_TOPIC,
        "BenchmarkTest",
        HALF_TOPIC,
        "RMQ_SYS_TRACE_TOPIC",
        OP_TOPIC,
        DISCARD_TOPIC,
        "SELF_TEST_TOPIC",
        "OFFSET_MOVED_EVENT",
    }
)
_SYSTEM_PREFIX: Final = "rmq_sys_"
_NAME_CHARACTERS: Final = re.compile(r"[%|a-zA-Z0-9_-]+")


def check_name(name: str, what: str = "topic", most: int = MAX_NAME) -> None:
    """Raises ValueError unless a topic, or what else follows its rules, may have this name."""
    if len(name) > most:
        raise ValueError(f"a {what}'s name has at most {most} characters, this one {len(name)}")
    if not _NAME_CHARACTERS.fullmatch(name):
        raise ValueError(f"a {what}'s name consists of letters, digits and %|_-, got {name!r}")


def is_system_topic(name: str) -> bool:
    """Administrators neither change nor delete it."""
    return name in _SYSTEM_TOPICS or name.startswith(_SYSTEM_PREFIX)


def is_internal_topic(name: str) -> bool:
    """Only brokers themselves write to it and read it; it is in no table of topics."""
    return name in _INTERNAL_TOPICS


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfig:
    """Messages are sent to queues 0 to `write_queues` - 1 and read from 0 to `read_queues` - 1: to take queues away
    from a topic without losing what is in them, one takes them from its writers first."""

    name: str
    read_queues: int
    write_queues: int
    permission: int = READ_WRITE
    system_flag: int = 0
    is_ordered: bool = False

    def __post_init__(self) -> None:
        """Raises ValueError for what no topic can be."""
        check_name(self.name)
        for queues in (self.read_queues, self.write_queues):
            if type(queues) is not int or not 1 <= queues <= MAX_QUEUES:
                raise ValueError(f"topic {self.name} needs 1 to {MAX_QUEUES} queues, got {queues!r}")
        if type(self.permission) is not int or not 0 <= self.permission <= _MAX_PERMISSION:
            raise ValueError(f"a permission is a sum of 4 (read), 2 (write) and 1 (inherit), got {self.permission!r}")
        if type(self.system_flag) is not int or not 0 <= self.system_flag < 2**31:
            raise ValueError(f"topicSysFlag: expected a whole number from 0 on, got {self.system_flag!r}")

    @classmethod
    def of(cls, name: str, queues: int, permission: int = READ_WRITE) -> TopicConfig:
        """With the same queues for readers and writers, open to both unless `permission` says otherwise."""
        return cls(name=name, read_queues=queues, write_queues=queues, permission=permission)

    def with_queues(self, queues: int) -> TopicConfig:
        """With so many for readers and for writers at least."""
        return replace(self, read_queues=max(self.read_queues, queues), write_queues=max(self.write_queues, queues))

    @property
    def is_readable(self) -> bool:
        return self.permission & READ != 0

    @property
    def is_writable(self) -> bool:
        return self.permission & WRITE != 0

    @property
    def is_inherited(self) -> bool:
        return self.permission & INHERIT != 0

    def as_json(self) -> dict[str, Any]:
        return {
            "attributes": {},
            "order": self.is_ordered,
            "perm": self.permission,
            "readQueueNums": self.read_queues,
            "topicFilterType": "SINGLE_TAG",
            "topicName": self.name,
            "topicSysFlag": self.system_flag,
            "writeQueueNums": self.write_queues,
        }

    @classmethod
    def from_json(cls, name: str, value: Mapping[str, Any]) -> TopicConfig:
        """Raises ValueError, KeyError, TypeError, AttributeError."""
        return cls(
            name=name,
            read_queues=value["readQueueNums"],
            write_queues=value["writeQueueNums"],
            permission=value.get("perm", READ_WRITE),
            system_flag=value.get("topicSysFlag", 0),
            is_ordered=value.get("order", False) is True,
        )

    @classmethod
    def from_fields(cls, fields: Mapping[str, str]) -> TopicConfig:
        """From the header of UPDATE_AND_CREATE_TOPIC. Raises ValueError, KeyError."""
        return cls(
            name=fields["topic"],
            read_queues=_number(fields["readQueueNums"]),
            write_queues=_number(fields["writeQueueNums"]),
            permission=_number(fields.get("perm", str(READ_WRITE))),
            system_flag=_number(fields.get("topicSysFlag") or "0"),
            is_ordered=fields.get("order", "false").lower() == "true",
        )

    def as_fields(self) -> dict[str, str]:
        return {
            "topic": self.name,
            "defaultTopic": DEFAULT_TOPIC,
            "readQueueNums": str(self.read_queues),
            "writeQueueNums": str(self.write_queues),
            "perm": str(self.permission),
            "topicFilterType": "SINGLE_TAG",
            "topicSysFlag": str(self.system_flag),
            "order": "true" if self.is_ordered else "false",
        }


def _number(text: str) -> int:
    if len(text) > 20:
        raise ValueError(f"a number of {len(text)} digits")
    return int(text)


def topics_as_json(topics: Mapping[str, TopicConfig]) -> dict[str, Any]:
    return {name: topic.as_json() for name, topic in topics.items()}


def topics_from_json(value: Mapping[str, Any]) -> dict[str, TopicConfig]:
    """Raises ValueError, KeyError, TypeError, AttributeError."""
    if len(value) > MAX_TOPICS:
        raise ValueError(f"{len(value)} topics, at most {MAX_TOPICS} are possible")
    return {name: TopicConfig.from_json(name, entry) for name, entry in value.items()}


def topic_after(default: TopicConfig, name: str, wanted_queues: int) -> TopicConfig:
    """A new topic, made after `default`, with no more queues than that has. Raises ValueError for a wrong name."""
    queues = max(1, min(wanted_queues, default.write_queues))
    return TopicConfig(name=name, read_queues=queues, write_queues=queues, permission=default.permission & ~INHERIT)
