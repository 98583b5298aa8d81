"""What a reader's subscription lets through at this broker."""

from __future__ import annotations

from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import RemotingError
from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.filter.subscription import SQL92, filter_of
from system_under_test.storage.message_filter import MessageFilter


def subscribed(config: BrokerConfig, expression: str, expression_type: str) -> MessageFilter | None:
    """None where every message is wanted.

    Raises RemotingError: SUBSCRIPTION_PARSE_FAILED, or SYSTEM_ERROR for a filter that is switched off.
    """
    if expression_type == SQL92 and not config.filters_by_properties:
        raise RemotingError(ResponseCode.SYSTEM_ERROR, "this broker does not filter by SQL92 (enablePropertyFilter)")
    try:
        return filter_of(expression, expression_type)
    except ValueError as error:
        raise RemotingError(ResponseCode.SUBSCRIPTION_PARSE_FAILED, f"the subscription is none: {error}") from error
