"""Queues as logs of messages: what was acked is kept, once, in order, the same everywhere, and nothing else is read."""

from checkers.log.checker import LogChecker

__all__ = ["LogChecker"]
