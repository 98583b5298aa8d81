"""The command of a node: registers as PySyncObj's README makes an object replicated, served line by line over TCP.

    python3 serve.py '{"self": "n1:4321", "others": ["n2:4321", "n3:4321"], "reads": "log", "options": {}}'

`options` are those of PySyncObj's `SyncObjConf`.

A request is a line of JSON, and so is its answer. What goes wrong is answered as PySyncObj's reason for it.
"""

from __future__ import annotations

import json
import socketserver
import sys
from typing import Any

from pysyncobj import FAIL_REASON, SyncObj, SyncObjConf, SyncObjException, replicated

CLIENT_PORT = 7000
WAIT_S = 2.0
REASONS = {value: name for name, value in vars(FAIL_REASON).items() if isinstance(value, int)}


class Registers(SyncObj):
    def __init__(self, address: str, others: list[str], conf: SyncObjConf) -> None:
        super().__init__(address, others, conf=conf)
        self.__registers: dict[str, int] = {}

    @replicated
    def write(self, key: str, value: int) -> None:
        self.__registers[key] = value

    @replicated
    def cas(self, key: str, expected: int, value: int) -> bool:
        if self.__registers.get(key) != expected:
            return False
        self.__registers[key] = value
        return True

    @replicated
    def read_in_order(self, key: str) -> int | None:
        """A read with a place in the log, among the writes."""
        return self.__registers.get(key)

    def read_here(self, key: str) -> int | None:
        """As a method that changes nothing is called by PySyncObj's README: what this node has."""
        return self.__registers.get(key)


def answer(registers: Registers, reads: str, request: dict[str, Any]) -> dict[str, Any]:
    f, key = request["f"], request.get("key")
    if f == "status":
        status = registers.getStatus()
        leader = status["leader"]
        return {"leader": leader is not None and leader == status["self"], "ready": registers.isReady()}
    try:
        if f == "read" and reads == "here":
            return {"value": registers.read_here(key)}
        if f == "read":
            return {"value": registers.read_in_order(key, sync=True, timeout=WAIT_S)}
        if f == "write":
            return {"value": registers.write(key, request["value"], sync=True, timeout=WAIT_S)}
        return {"done": registers.cas(key, request["expected"], request["value"], sync=True, timeout=WAIT_S)}
    except SyncObjException as error:
        return {"error": REASONS.get(error.errorCode, str(error.errorCode))}


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


def main() -> None:
    config = json.loads(sys.argv[1])
    conf = SyncObjConf(commandsWaitLeader=False, **config["options"])
    registers = Registers(config["self"], config["others"], conf)

    class Lines(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            for line in self.rfile:
                said = answer(registers, config["reads"], json.loads(line))
                self.wfile.write(json.dumps(said).encode() + b"\n")

    Server(("", CLIENT_PORT), Lines).serve_forever()


if __name__ == "__main__":
    main()
