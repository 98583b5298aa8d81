"""Where a message is written that somebody wants to be shown: to its topic, or to where it waits until it is due."""

from __future__ import annotations

from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.broker.delayed.delay_levels import level_of, waiting
from system_under_test.rocketmq.broker.delayed.timer_messages import is_timed, require_none_taken_back, timed
from system_under_test.runtime.host import Host
from system_under_test.storage.new_message import NewMessage


class WaitingRooms:
    def __init__(self, host: Host, config: BrokerConfig) -> None:
        self._clock = host.clock
        self._config = config

    def place(self, message: NewMessage) -> NewMessage:
        """As it is to be written now; a level outranks a time.

        Raises RemotingError: no level, no time, too far away, or it takes something back and names no time.
        """
        if level_of(message) == 0 and is_timed(message):
            return timed(message, self._config.timer, self._clock.wall_ns() // 1_000_000)
        require_none_taken_back(message)
        return waiting(message, self._config.delays.levels)
