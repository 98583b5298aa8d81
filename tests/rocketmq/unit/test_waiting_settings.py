"""Settings of what waits at a broker: delay levels, timers, transactions."""

from __future__ import annotations

import pytest

from system_under_test.node.settings import read_config
from system_under_test.rocketmq.broker.config import BrokerConfig, TransactionSettings
from system_under_test.rocketmq.broker.delayed.delay_levels import DelayDelivery, DelaySettings
from system_under_test.rocketmq.broker.delayed.timer_messages import TimerSettings

NEEDED = {"controllerAddr": "c1:9878"}


def test_they_have_rocketmqs_names_and_defaults():
    config = read_config(BrokerConfig, NEEDED)
    assert (config.delays, config.timer, config.transactions) == (
        DelaySettings(),
        TimerSettings(),
        TransactionSettings(),
    )
    config = read_config(
        BrokerConfig,
        {
            **NEEDED,
            "messageDelayLevel": "2s 1m",
            "enableScheduleAsyncDeliver": True,
            "scheduleAsyncDeliverMaxPendingLimit": 5,
            "timerPrecisionMs": 100,
            "timerWheelSlots": 400,
            "timerMaxDelaySec": 60,
            "transactionTimeOut": 1_500,
            "transactionCheckInterval": 2_500,
            "transactionCheckMax": 3,
            "rejectTransactionMessage": True,
        },
    )
    assert config.delays.levels.delays_ms == (2_000, 60_000)
    assert (config.delays.delivery, config.delays.pending) == (DelayDelivery.ASYNC, 5)
    assert (config.timer.precision_ms, config.timer.slots, config.timer.window_slots) == (100, 400, 100)
    assert config.timer.max_delay_s == 60
    assert config.transactions == TransactionSettings(rejected=True, timeout_s=1.5, check_interval_s=2.5, check_max=3)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"messageDelayLevel": "1s 5x"}, "messageDelayLevel: expected delays such as 1s 5m 2h 1d"),
        ({"scheduleDeliveryMode": "ALL"}, "scheduleDeliveryMode: expected one of SINGLE, LEVEL, ASYNC, got 'ALL'"),
        (
            {"scheduleDeliveryMode": "SINGLE", "enableScheduleAsyncDeliver": True},
            "scheduleDeliveryMode: expected ASYNC with enableScheduleAsyncDeliver, got SINGLE",
        ),
        ({"timerWheelSlots": 400, "timerRollWindowSlot": 101}, "timerRollWindowSlot: .* from 2 to 100, got 101"),
        ({"timerPrecisionMs": 0}, "timerPrecisionMs: expected a whole number from 1 to 60000, got 0"),
        ({"transactionCheckMax": 0}, "transactionCheckMax: expected a whole number from 1 on, got 0"),
    ],
)
def test_a_wrong_one_is_named(config, words):
    with pytest.raises(ValueError, match=words):
        read_config(BrokerConfig, {**NEEDED, **config})
