"""How long clients were refused, and how soon they were served again for good."""

from checkers.availability.checker import Availability

__all__ = ["Availability"]
