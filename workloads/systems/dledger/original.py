"""Members of the public library: a virtual machine each, which is given the settings of ours by their public names.

The library has no program to start. A class of ours reads the settings into its `DLedgerConfig` and runs its server.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.program import PLACE_OF_HOME, Command, JavaRelease, MavenArtifacts
from workloads.systems.java import NO_TLS, OPTIONS

DIRECTORY = "/opt/dledger"
LIBRARY = "io.openmessaging.storage:dledger"
LOGGING = "org.slf4j:slf4j-simple:1.7.36"
"""The library logs by an interface behind which it leaves others to put something."""
MAIN = Path(__file__).with_name("OriginalMember.java")
LOG_OPTIONS = (
    "-Duser.timezone=UTC",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS",
    "-Dorg.slf4j.simpleLogger.log.RocketmqRemoting=warn",
    "-Dorg.slf4j.simpleLogger.log.io.netty=warn",
    "-Dorg.slf4j.simpleLogger.log.io.openmessaging.storage.dledger.DLedgerServer=off",
)
"""DLedgerServer logs the stack of each request that it refuses."""
HEAP = ("-Xms48m", "-Xmx160m", "-XX:MaxDirectMemorySize=128m")
OTHERWISE = "leave release out, which is the DLedger that comes with Stormproof"
SETTINGS_FILE = f"{PLACE_OF_HOME}/settings.json"
STORE = f"{PLACE_OF_HOME}/store"
STOPS_WITHIN_S = 3.0
RENAMED: Mapping[str, str] = {"isEnableBatchPush": "enableBatchPush"}
"""What a setter's name makes of a setting's."""
UNKNOWN = ("ackDurable",)
"""Settings of ours."""


def original_member(release: str, config: Mapping[str, Any]) -> Command:
    """The same member as ours of this config. Its log comes home, to be compared with others."""
    settings = {RENAMED.get(name, name): value for name, value in config.items() if name not in UNKNOWN}
    settings["storeBaseDir"] = STORE
    classes = f"{DIRECTORY}/classes:{DIRECTORY}/lib/*"
    return Command(
        argv=("java", *OPTIONS.split(), *HEAP, NO_TLS, *LOG_OPTIONS, "-cp", classes, MAIN.stem, SETTINGS_FILE),
        image=JavaRelease(
            content=MavenArtifacts(coordinates=(f"{LIBRARY}:{release}", LOGGING), otherwise=OTHERWISE, sources=(MAIN,)),
            directory=DIRECTORY,
        ),
        files={SETTINGS_FILE: json.dumps(settings, indent=2) + "\n"},
        logs=STORE,
        stops_within_s=STOPS_WITHIN_S,
    )
