"""Consumption by groups: what every group must get, in which order, and how often."""

from checkers.consumption.checker import ConsumptionChecker, Mode, Model

__all__ = ["ConsumptionChecker", "Mode", "Model"]
