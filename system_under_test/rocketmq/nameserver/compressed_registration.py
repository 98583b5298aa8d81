"""A registration's body as RocketMQ's brokers compress it: zlib over pieces, each with its length before it.

`length:4, data version in JSON | number of topics:4 | length:4, topic … | length:4, filter servers in JSON`, and from
version 5.0 on `number of mappings:4 | length:4, mapping in JSON …`. A topic is a line of words with spaces between:
name, queues to read, queues to write, permission, the type of its filter, and its attributes in JSON.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any, Final

from system_under_test.remoting.json_body import decode_json
from system_under_test.rocketmq.compression import inflated
from system_under_test.rocketmq.data_version import DataVersion
from system_under_test.rocketmq.static_topic.mapping import MappingInfo
from system_under_test.rocketmq.topic import MAX_TOPICS, TopicConfig

"""Of what a body may grow to: ten thousand topics with all attributes that they may have take less."""
_LENGTH: Final = struct.Struct(">i")
_WORDS: Final = 5


def compress(
    version: DataVersion, topics: Mapping[str, TopicConfig], mappings: Mapping[str, MappingInfo], broker_name: str
) -> bytes:
    pieces = [_piece(json.dumps(version.as_json(), separators=(",", ":"))), _LENGTH.pack(len(topics))]
    for topic in topics.values():
        words = f"{topic.name} {topic.read_queues} {topic.write_queues} {topic.permission} SINGLE_TAG {{}}"
        pieces.append(_piece(words))
    pieces += _piece("[]"), _LENGTH.pack(len(mappings))
    pieces += [_piece(json.dumps(one.as_json(broker_name), separators=(",", ":"))) for one in mappings.values()]
    return zlib.compress(b"".join(pieces), 9)


def decompress(body: bytes) -> tuple[DataVersion, dict[str, TopicConfig], dict[str, MappingInfo]]:
    """Filter servers have no meaning here. Raises ValueError, KeyError, TypeError, AttributeError."""
    reader = _Reader(inflated(body))
    version = DataVersion.from_json(decode_json(reader.piece()))
    count = reader.number()
    if not 0 <= count <= MAX_TOPICS:
        raise ValueError(f"{count} topics, at most {MAX_TOPICS} are possible")
    topics = [_topic(reader.piece().decode()) for _ in range(count)]
    return version, {topic.name: topic for topic in topics}, _mappings(reader)


def _mappings(reader: _Reader) -> dict[str, MappingInfo]:
    """Brokers before 5.0 end with the filter servers, or before them."""
    if reader.is_at_end:
        return {}
    reader.piece()
    count = 0 if reader.is_at_end else reader.number()
    if not 0 <= count <= MAX_TOPICS:
        raise ValueError(f"{count} static topics, at most {MAX_TOPICS} are possible")
    mappings = [MappingInfo.from_json(decode_json(reader.piece())) for _ in range(count)]
    return {mapping.topic: mapping for mapping in mappings}


def _topic(line: str) -> TopicConfig:
    words: list[Any] = line.split(" ")
    if len(words) < _WORDS or not all(word.isascii() and word.isdigit() and len(word) < 10 for word in words[1:4]):
        raise ValueError(f"expected a topic's name, three numbers and more, got {line[:80]!r}")
    name, read_queues, write_queues, permission = words[0], *map(int, words[1:4])
    return TopicConfig(name=name, read_queues=read_queues, write_queues=write_queues, permission=permission)


def _piece(text: str) -> bytes:
    data = text.encode()
    return _LENGTH.pack(len(data)) + data


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def is_at_end(self) -> bool:
        return self._at == len(self._data)

    def number(self) -> int:
        """Raises ValueError."""
        try:
            (number,) = _LENGTH.unpack_from(self._data, self._at)
        except struct.error as error:
            raise ValueError(f"the body ends too early: {error}") from error
        self._at += _LENGTH.size
        return int(number)

    def piece(self) -> bytes:
        """Raises ValueError."""
        length = self.number()
        if not 0 <= length <= len(self._data) - self._at:
            raise ValueError(f"a piece of {length} bytes where {len(self._data) - self._at} are left")
        self._at += length
        return self._data[self._at - length : self._at]
