"""Of what Spark hands on when a task raises, what it raised."""

from __future__ import annotations

import pytest

from checkers.spark.task_failures import raised

PLAIN = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/somewhere/checkers/spark/stages.py", line 53, in mapped
    yield kernel(table)
          ^^^^^^^^^^^^^
ValueError: a kernel says no"""
IN_TURN = """Traceback (most recent call last):
  File "/somewhere/a.py", line 1, in first
    this()
KeyError: 1

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/somewhere/b.py", line 2, in second
checkers.spark.payloads.LostFile: /tmp/x is gone: run the check again
in another place
"""


@pytest.mark.parametrize(
    ("traceback", "words"),
    [
        (PLAIN, "ValueError: a kernel says no"),
        (IN_TURN, "checkers.spark.payloads.LostFile: /tmp/x is gone: run the check again\nin another place"),
        ("the worker is gone", "the worker is gone"),
        ("", ""),
    ],
)
def test_what_was_raised_is_told_without_its_traceback(traceback: str, words: str) -> None:
    assert raised(traceback) == words
