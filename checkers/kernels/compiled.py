"""Compiles hot loops with numba, and keeps what was compiled where it can be written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

if not os.access(Path(__file__).parent, os.W_OK):
    # An installation that cannot be written to, or a zip shipped to a worker; numba reads this when it is imported.
    os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(tempfile.gettempdir()) / f"stormproof-numba-{os.getuid()}"))

import numba

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Machine code from the first call on, which lets other threads run; later processes load it."""
    result: Callable[P, R] = numba.njit(cache=True, nogil=True)(function)
    return result
