"""The functions of registers as numbers."""

from __future__ import annotations

FUNCTIONS = ("read", "write", "cas")
READ, WRITE, CAS = range(3)
CAS_MISS = 3
"""A cas that ran and found another value than the one it expected: an observation, like a read."""
