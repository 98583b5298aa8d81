"""Of all that a JVM says when Spark does not start, the line that says why."""

from __future__ import annotations

import pytest

from checkers.spark.gateway import essence

WRONG_MASTER = """WARNING: Using incubator modules: jdk.incubator.vector
26/01/01 00:00:00 WARN Utils: Set SPARK_LOCAL_IP if you need to bind to another address
Exception in thread "main" org.apache.spark.SparkException: Master must either be yarn or start with spark
\tat org.apache.spark.deploy.SparkSubmit.error(SparkSubmit.scala:1068)
"""
NO_ANSWER = """Setting Spark log level to "ERROR".
26/01/01 00:00:00 ERROR StandaloneSchedulerBackend: Application has been killed. Reason: All masters are unresponsive!
"""


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (WRONG_MASTER, "Master must either be yarn or start with spark"),
        (NO_ANSWER, "Reason: All masters are unresponsive!"),
        ("WARNING: Using incubator modules", ""),
    ],
)
def test_only_the_line_that_names_the_error_is_shown(output: str, words: str) -> None:
    assert essence(output).endswith(words)
    assert "\n" not in essence(output)
