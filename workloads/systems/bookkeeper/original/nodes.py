"""The processes of a release of BookKeeper: servers of ZooKeeper, its bookies, and brokers that write by its client.

The client is a library. A broker of ours in Java (`OriginalBroker`) owns partitions as the broker does that comes with
Stormproof, and leaves all that happens to ledgers to the release's client. What bookies and brokers of ours are set to
they are set to as well, by BookKeeper's own names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.program import PLACE_OF_HOME, Command, JavaRelease, MavenArtifacts
from harness.system import NodeSpec
from workloads.systems.bookkeeper.nodes import (
    ANSWER_TIMEOUT_MS,
    AUDIT_MS,
    BOOKIE_PORT,
    BROKER_PORT,
    PARTITION,
    RETRY_MS,
)
from workloads.systems.bookkeeper.settings import BOOKIES, BROKERS, METADATA, METADATA_NODES, BookkeeperSettings
from workloads.systems.java import OPTIONS
from workloads.systems.zookeeper.nodes import PORT as ZOOKEEPER_PORT
from workloads.systems.zookeeper.nodes import server

DIRECTORY = "/opt/bookkeeper"
LIBRARY = "org.apache.bookkeeper:bookkeeper-server"
ZOOKEEPER = "3.9.5"
"""The release of the servers; the client in bookies and brokers is the one that the release of BookKeeper brings."""
SOURCES = tuple(sorted(Path(__file__).parent.glob("*.java")))
OTHERWISE = "leave release out, which is the BookKeeper that comes with Stormproof"
METADATA_SERVERS = ",".join(f"{name}:{ZOOKEEPER_PORT}" for name in METADATA_NODES)
HEAPS = {
    BOOKIES: ("-Xms48m", "-Xmx256m", "-XX:MaxDirectMemorySize=256m"),
    BROKERS: ("-Xms48m", "-Xmx192m", "-XX:MaxDirectMemorySize=128m"),
}
STOPS_WITHIN_S = 3.0
SETTINGS_FILE, LOG_FILE = f"{PLACE_OF_HOME}/settings", f"{PLACE_OF_HOME}/log4j2.xml"
LOGS = f"{PLACE_OF_HOME}/logs"
LOG = f"""<Configuration status="warn">
  <Appenders>
    <Console name="CONSOLE">
      <ThresholdFilter level="warn"/>
      <PatternLayout pattern="%d{{yyyy-MM-dd HH:mm:ss.SSS}}{{GMT}} %p %c{{1}} - %m%n"/>
    </Console>
    <File name="FILE" fileName="{LOGS}/bookkeeper.log">
      <PatternLayout pattern="%d{{yyyy-MM-dd HH:mm:ss.SSS}}{{GMT}} %p %c{{1}} - %m%n"/>
    </File>
  </Appenders>
  <Loggers>
    <Logger name="org.apache.zookeeper" level="warn"/>
    <Root level="info"><AppenderRef ref="CONSOLE"/><AppenderRef ref="FILE"/></Root>
  </Loggers>
</Configuration>
"""
SUPERVISED = "while true; do %s; echo bookie ended with exit code $?; sleep 1; done"
"""A bookie ends itself when its recovery's session with ZooKeeper is over, for its supervisor to start it again."""
JOURNAL_MB, ENTRY_LOG_BYTES = 2, 1024 * 1024
"""Small, so that a storm fills several files."""


def original_nodes(settings: BookkeeperSettings) -> tuple[NodeSpec, ...]:
    return (
        *(
            server(name, force_sync=True, release=ZOOKEEPER, servers=METADATA_NODES, group=METADATA)
            for name in METADATA_NODES
        ),
        *(_bookie(settings, name) for name in settings.bookie_names),
        *(_broker(settings, name) for name in settings.broker_names),
    )


def _bookie(settings: BookkeeperSettings, name: str) -> NodeSpec:
    """It shows each replica's copies in the end, by way of a broker's client."""
    places = ("journal", "ledgers", "index")
    properties = {
        "metadataServiceUri": f"zk+hierarchical://{METADATA_SERVERS.replace(',', ';')}/ledgers",
        "zkTimeout": _milliseconds(settings.session_timeout_s),
        "bookiePort": BOOKIE_PORT,
        "advertisedAddress": name,
        "httpServerEnabled": False,
        "journalDirectories": f"{PLACE_OF_HOME}/journal",
        "ledgerDirectories": f"{PLACE_OF_HOME}/ledgers",
        "indexDirectories": f"{PLACE_OF_HOME}/index",
        "journalSyncData": settings.journal_sync,
        "journalMaxSizeMB": JOURNAL_MB,
        "journalPreAllocSizeMB": 1,
        "logSizeLimit": ENTRY_LOG_BYTES,
        "diskUsageThreshold": 0.99,
        "minUsableSizeForIndexFileCreation": 10_000_000,
        "minUsableSizeForEntryLogCreation": 10_000_000,
        "numIOThreads": 2,
        "serverNumIOThreads": 2,
        "autoRecoveryDaemonEnabled": True,
        "openLedgerRereplicationGracePeriod": _milliseconds(settings.open_grace_s),
        "auditorPeriodicBookieCheckInterval": AUDIT_MS // 1_000,
        "auditorPeriodicCheckInterval": AUDIT_MS // 1_000,
        "rwRereplicateBackoffMs": RETRY_MS,
    }
    text = "".join(
        f"{key}={str(value).lower() if isinstance(value, bool) else value}\n" for key, value in properties.items()
    )
    made = " ".join(f"{PLACE_OF_HOME}/{place}" for place in places)
    program = _java(settings, BOOKIES, "OriginalBookie", text, script=f"mkdir -p {made}; {SUPERVISED}")
    return NodeSpec(name=name, groups=(BOOKIES,), program=program, ports=(BOOKIE_PORT,), replica=True)


def _broker(settings: BookkeeperSettings, name: str) -> NodeSpec:
    config: Mapping[str, Any] = {
        "name": name,
        "metadataServers": METADATA_SERVERS,
        "sessionTimeout": _milliseconds(settings.session_timeout_s),
        "brokerPort": BROKER_PORT,
        "bookieTimeout": max(1, round(ANSWER_TIMEOUT_MS * settings.time_scale / 1_000)),
        "partitions": [PARTITION.format(number) for number in range(settings.partitions)],
        "ensembleSize": settings.ensemble,
        "writeQuorum": settings.write_quorum,
        "ackQuorum": settings.ack_quorum,
        "rollEntries": settings.roll_entries,
    }
    program = _java(settings, BROKERS, "OriginalBroker", json.dumps(config, indent=2) + "\n", script="exec %s")
    return NodeSpec(name=name, groups=(BROKERS,), program=program, ports=(BROKER_PORT,))


def _java(settings: BookkeeperSettings, group: str, main: str, text: str, *, script: str) -> Command:
    """`script`: for `sh`, with the command that starts the virtual machine in the place of %s."""
    options = f"{OPTIONS} {' '.join(HEAPS[group])} -Dlog4j2.configurationFile={LOG_FILE}"
    classes = f"{DIRECTORY}/classes:{DIRECTORY}/lib/*"
    return Command(
        argv=("sh", "-c", script % f'java {options} -cp "{classes}" {main} {SETTINGS_FILE}'),
        image=JavaRelease(
            content=MavenArtifacts(
                coordinates=(f"{LIBRARY}:{settings.release}",), otherwise=OTHERWISE, sources=SOURCES
            ),
            directory=DIRECTORY,
        ),
        files={SETTINGS_FILE: text, LOG_FILE: LOG},
        logs=LOGS,
        stops_within_s=STOPS_WITHIN_S,
    )


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1_000)
