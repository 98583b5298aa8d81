"""Published releases of Java programs on trial: how one is named, how it runs on a small machine, and when its memory
was too small."""

from __future__ import annotations

import re

from harness.errors import UsageError
from harness.printable import printable
from harness.record.run_directory import NODE_LOG
from harness.reporting import Account

RELEASE = re.compile(r"\d+\.\d+\.\d+(-[\w.]+)?")
OPTIONS = (
    "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 --add-opens=java.base/java.nio=ALL-UNNAMED "
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED --add-exports=java.base/jdk.internal.ref=ALL-UNNAMED"
)
"""The virtual machine is one of many on two processors, and gives mapped files back."""
NO_TLS = "-Dtls.server.mode=disabled"
"""Each server that speaks RocketMQ's remoting makes a certificate of its own when it starts otherwise, which nobody
asks for: seconds for each."""
OUT_OF_MEMORY = "java.lang.OutOfMemoryError"
"""Says that a heap was too small that this project has chosen: what a node forgets or refuses after it says nothing
about its program."""
LONGEST_SHOWN = 200
"""Characters of a line."""


def require_release(release: str, *, of: str, such_as: str) -> None:
    """Raises UsageError where this is no number of a release."""
    if not RELEASE.fullmatch(release):
        raise UsageError(f"release takes the version of a release of {of}, as {such_as}, got {release!r}")


def out_of_memory(account: Account) -> list[str]:
    """`Reporting.doubts`"""
    for path, lines in ((NODE_LOG, account.console), *account.logs.items()):
        found = next((line for line in lines if OUT_OF_MEMORY in line), None)
        if found is not None:
            return [f"ran out of the memory that its settings give it ({path}: {printable(found[:LONGEST_SHOWN])})"]
    return []
