"""How a broker gets its id from the controller, once and for good.

Three steps, so that a crash between any two neither loses an id nor gives it to two brokers: the next free id and a
check code go to a temporary file; the controller is asked to apply them, which it does again and again for the
same check code and refuses for another; then they go to the permanent file. Both files are durable when written.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from system_under_test.remoting.client_error import ClientError
from system_under_test.remoting.codes import ResponseCode
from system_under_test.rocketmq.client.controller_client import ControllerClient, ControllerRefusal
from system_under_test.runtime.host import Disk, Host
from system_under_test.storage.record_file import RecordFile


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    broker_id: int
    """The controller's id, from 1; not the role's."""
    check_code: str
    """Proves to the controller that it is this broker that asks again."""


class IdentityFile:
    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._record = RecordFile(disk, path)

    def load(self) -> Identity | None:
        """Raises StorageCorrupt."""
        record = self._record.read()
        return None if record is None else Identity(**json.loads(record))

    async def save(self, identity: Identity) -> None:
        """Durable on return."""
        fields = {"broker_id": identity.broker_id, "check_code": identity.check_code}
        await self._record.write(json.dumps(fields).encode())

    def remove(self) -> None:
        if self._disk.exists(self._path):
            self._disk.remove(self._path)


async def obtain_identity(
    host: Host,
    controllers: ControllerClient,
    *,
    cluster: str,
    group: str,
    address: str,
    store_path: str,
    retry_s: float,
) -> Identity:
    """The permanent identity; asks the controller, as long as it takes, if there is none yet."""
    permanent = IdentityFile(host.disk, f"{store_path}/brokerIdentity")
    temporary = IdentityFile(host.disk, f"{store_path}/brokerIdentity-temp")
    identity = permanent.load()
    while identity is None:
        candidate = temporary.load()
        try:
            if candidate is None:
                broker_id = await controllers.get_next_broker_id(cluster, group)
                check_code = f"{address};{host.clock.wall_ns() // 1_000_000};{host.random.getrandbits(64):016x}"
                candidate = Identity(broker_id=broker_id, check_code=check_code)
                await temporary.save(candidate)
            await controllers.apply_broker_id(cluster, group, candidate.broker_id, candidate.check_code)
        except ControllerRefusal as refusal:
            if refusal.response_code == ResponseCode.CONTROLLER_BROKER_ID_INVALID:
                # Another broker was faster; its check code stands beside this id.
                temporary.remove()
            else:
                await _wait(host, retry_s, refusal)
        except ClientError as error:
            await _wait(host, retry_s, error)
        else:
            await permanent.save(candidate)
            temporary.remove()
            identity = candidate
    return identity


async def _wait(host: Host, retry_s: float, error: ClientError) -> None:
    host.log("cannot_come_online", reason=str(error))
    await host.clock.sleep(retry_s)
