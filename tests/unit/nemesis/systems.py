"""What systems declare, for tests of faults: RocketMQ's own, and systems of other kinds."""

from __future__ import annotations

from harness.system import Declaration
from nemesis.vocabulary import Vocabulary
from stormproof.session import registry
from workloads.systems.rocketmq.adapter import SYSTEM
from workloads.systems.rocketmq.settings import RocketmqSettings

ROCKETMQ = SYSTEM.cluster(RocketmqSettings())
WORDS: Vocabulary = registry.vocabulary(SYSTEM, RocketmqSettings())
"""Roles primary, active-controller and dispensable; b1 to b3 in brokers, c1 to c3 in controllers."""
LEADERLESS = Declaration(groups=("stores", "gates"), data=("stores",))
MEMO = Declaration(groups=("memos",), data=("memos",), roles={"primary": "memos"})
