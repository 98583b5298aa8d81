"""How long what clients asked for was refused, and how soon it was granted again for good."""

from checkers.availability.checker import Availability

__all__ = ["Availability"]
