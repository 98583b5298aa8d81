"""What a slave has beyond its master's log, kept beside the log before it is cut there."""

from __future__ import annotations

from system_under_test.runtime.host import DiskError, Host
from system_under_test.storage.errors import StorageFailed
from system_under_test.storage.message_store import MessageStore

PIECE_BYTES = 1024 * 1024


async def set_aside(host: Host, store: MessageStore, store_path: str, start: int) -> str:
    """Write all from `start` to the end of the log to a file that says where it stood; durable on return.

    Returns the file's path. Raises StorageFailed, DiskFull.
    """
    end = store.max_offset
    path = f"{store_path}/surplus/{start:020d}-{end:020d}-{host.clock.wall_ns() // 1_000_000}"
    partial = path + ".partial"
    try:
        file = host.disk.open(partial)
        try:
            file.truncate(0)
            position = start
            while position < end:
                data = store.read_for_transfer(position, min(PIECE_BYTES, end - position))
                file.append(data)
                position += len(data)
            await file.fsync()
        finally:
            file.close()
        await host.disk.replace(partial, path)
    except DiskError as error:
        raise StorageFailed(f"{path}: {error}") from error
    return path
