"""By what a producer names a delayed message that it takes back, as RocketMQ's brokers do since 5.3.

`v1 topic broker time id`, in URL-safe Base64: the id is the producer's own, the time that at which the message is due.
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from typing import Final

_VERSION: Final = "v1"
_PARTS: Final = 5
LONGEST: Final = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallHandle:
    topic: str
    broker_name: str
    due_ms: int
    unique_key: str

    def encode(self) -> str:
        text = " ".join((_VERSION, self.topic, self.broker_name, str(self.due_ms), self.unique_key))
        return urlsafe_b64encode(text.encode()).decode()

    @classmethod
    def decode(cls, text: str) -> RecallHandle:
        """Raises ValueError."""
        if len(text) > LONGEST:
            raise ValueError(f"a recall handle has at most {LONGEST} characters, not {len(text)}")
        try:
            parts = urlsafe_b64decode(text.encode()).decode().split(" ")
        except (binascii.Error, ValueError) as error:
            raise ValueError(f"no recall handle: {error}") from error
        if len(parts) != _PARTS or parts[0] != _VERSION or not all(parts) or not _is_time(parts[3]):
            raise ValueError("no recall handle of version 1: it names a topic, a broker, a time and an id")
        return cls(topic=parts[1], broker_name=parts[2], due_ms=int(parts[3]), unique_key=parts[4])


def _is_time(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 18
