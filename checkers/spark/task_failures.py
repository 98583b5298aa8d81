"""What went wrong on a worker, in the words of the exception there.

Spark hands on a traceback of the worker, below a line that says that there is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager


class TaskFailed(Exception):
    """A task raised; says what, and with which message."""


@contextmanager
def failures_of_workers() -> Iterator[None]:
    """What fails inside because a task raised fails as TaskFailed."""
    from pyspark.errors import PythonException

    try:
        yield
    except PythonException as error:
        raise TaskFailed(raised(str(error))) from error


def raised(traceback: str) -> str:
    """The last exception of a traceback, and its message: what is behind the last line of a frame."""
    lines = traceback.rstrip().splitlines()
    frames = [number for number, line in enumerate(lines) if re.match(r"\s+(File |\S)", line)]
    return "\n".join(lines[frames[-1] + 1 :] if frames else lines) or traceback
