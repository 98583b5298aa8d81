"""Have the conversation of `public_answers` with a published release, and write it down.

    python -m tests.rocketmq.scenarios.record_public_answers 5.4.0 --jars FOLDER

FOLDER has the jars of that release (rocketmq-broker, -namesrv and -controller with all that they need, as Maven's
`dependency:copy-dependencies` lays them out). One NameServer with a controller and one broker run on this machine, with
the settings that `release=` gives them, on their usual ports.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from harness.program import PLACE_OF_HOME, Command
from system_under_test.remoting.client_error import ClientError
from system_under_test.rocketmq.client.admin_client import AdminClient
from system_under_test.runtime.real import RealHost
from tests.rocketmq.scenarios.public_answers import (
    BROKER,
    CONTROLLER,
    GROUP,
    NAME_SERVER,
    Exchange,
    RecordingNetwork,
    Tape,
    conversation,
    neutral,
)
from workloads.systems.java import OPTIONS
from workloads.systems.rocketmq.nodes import node_specs
from workloads.systems.rocketmq.original import original_node
from workloads.systems.rocketmq.release import MAIN
from workloads.systems.rocketmq.settings import RocketmqSettings

TRANSCRIPTS = Path(__file__).parent / "public_transcripts"
PROGRAMS = {"c1": MAIN["mqnamesrv"], "b1": MAIN["mqbroker"]}
PATIENCE_S = 240.0
TEXT = re.compile(rb"[ -_a-~]{4,}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("release")
    parser.add_argument("--jars", type=Path, required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place, running(arguments.release, arguments.jars, Path(place)):
        tape = asyncio.run(recorded(Path(place)))
    path = TRANSCRIPTS / f"release-{arguments.release}.txt"
    path.write_text(written(arguments.release, tape))
    sys.stdout.write(f"{path}: {len(tape.exchanges)} requests\n")


@contextmanager
def running(release: str, jars: Path, place: Path) -> Iterator[None]:
    settings = RocketmqSettings(release=release, controllers=1, brokers=1, min_in_sync_replicas=1)
    with ExitStack() as programs:
        for spec in node_specs(settings, {}):
            command = original_node(spec, settings).program
            assert isinstance(command, Command)
            home = place / spec.name
            home.mkdir()
            ((_, text),) = command.files.items()
            file = home / "settings"
            file.write_text(
                re.sub(r"\b[cb]1:", "127.0.0.1:", text)
                .replace("${name}", "127.0.0.1")
                .replace(PLACE_OF_HOME, str(home))
            )
            options = command.environment["JAVA_OPT_EXT"].replace(PLACE_OF_HOME, str(home)).split()
            program = subprocess.Popen(
                ["java", *OPTIONS.split(), *options, "-cp", f"{jars}/*", PROGRAMS[spec.name], "-c", str(file)],
                env={"ROCKETMQ_HOME": str(home), "PATH": "/usr/bin:/bin"},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            programs.callback(program.wait)
            programs.callback(program.kill)
        yield


async def recorded(place: Path) -> Tape:
    addresses = {one: f"127.0.0.1:{one.rpartition(':')[2]}" for one in (NAME_SERVER, CONTROLLER, BROKER)}
    host, tape = RealHost("recorder", place / "recorder", addresses), Tape()
    async with asyncio.timeout(PATIENCE_S):
        await until_led(host)
        host.network = RecordingNetwork(host.network, tape)  # type: ignore[assignment]
        await conversation(host, tape)
    return tape


async def until_led(host: RealHost) -> None:
    admin = AdminClient(host)
    while True:
        try:
            groups = await admin.broker_groups(NAME_SERVER)
            if any(group.name == GROUP and 0 in group.brokers for group in groups):
                break
        except ClientError:
            pass
        await host.clock.sleep(0.2)
    admin.close()


def written(release: str, tape: Tape) -> str:
    first = f"RocketMQ {release} and our clients, as record_public_answers.py wrote it down.\n"
    return first + "".join(_written(exchange) for exchange in tape.exchanges)


def _written(exchange: Exchange) -> str:
    lines = [f"\n== {exchange.title}, at {exchange.address}"]
    lines += [f"> {line}" for line in _lines(neutral(exchange.asked))]
    lines += [f"< {line}" for line in _lines(neutral(exchange.answered))]
    return "\n".join(lines) + "\n"


def _lines(frame: bytes) -> Iterator[str]:
    """The two lengths, then text between backquotes and other bytes in hexadecimal digits."""
    yield frame[:4].hex()
    yield frame[4:8].hex()
    at = 8
    for found in TEXT.finditer(frame, 8):
        if found.start() > at:
            yield frame[at : found.start()].hex()
        yield f"`{found[0].decode()}`"
        at = found.end()
    if at < len(frame):
        yield frame[at:].hex()


if __name__ == "__main__":
    main()
