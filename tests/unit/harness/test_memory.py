"""What is freed is used again, without another page from the kernel."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

PAGES_TOUCHED = """
import resource, sys
import numpy as np
from harness.memory import keep_freed_memory

def touched() -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    held = [np.ones(1 << 18) for _ in range(32)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

if sys.argv[1] == "kept":
    keep_freed_memory()
touched()
print(touched())
"""


def touched_again(how: str) -> int:
    command = [sys.executable, "-c", PAGES_TOUCHED, how]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries decide for themselves")
def test_arrays_are_made_of_memory_that_others_were() -> None:
    assert touched_again("kept") < touched_again("returned") / 10
