"""What operations on objects are called in numbers."""

from __future__ import annotations

import numpy as np

FUNCTIONS = ("read", "write", "cas")
"""Of registers."""
READ, WRITE, CAS = range(3)
CAS_MISS = 3
"""A cas that ran and found another value than the one it expected: an observation, like a read."""

NEVER = int(np.iinfo(np.int64).max)
"""The end of an operation that nobody saw end."""
