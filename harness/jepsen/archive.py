"""A tar archive of Jepsen's tests, plain or packed by gzip or zstd: of each test the texts that are read, unpacked."""

from __future__ import annotations

import tarfile
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from harness.errors import UsageError
from harness.jepsen import source
from harness.jepsen.source import BrokenText
from harness.jepsen.test_directory import HISTORIES, LOG, RESULTS
from harness.reading import MOST_SPOOLED_BYTES, TooLong

TEXTS = frozenset((*HISTORIES, LOG, RESULTS))
_BLOCK_BYTES = 512
_MAGIC = slice(257, 262)


def is_archive(path: Path) -> bool:
    """Seen from its first bytes. Raises OSError."""
    try:
        with source.opened(path) as text:
            return text.read(_BLOCK_BYTES)[_MAGIC] == b"ustar"
    except BrokenText:
        return False


def unpack(path: Path, into: Path, most_bytes: int = MOST_SPOOLED_BYTES) -> None:
    """Write the tests' texts as they lie in the archive; nothing outside of `into`, a folder, whatever names say.

    What ends within a file leaves its beginning. Raises OSError, UsageError, TooLong.
    """
    left = most_bytes
    try:
        with (
            source.opened(path) as text,
            tarfile.open(fileobj=cast(IO[bytes], _Stream(text)), mode="r|") as archive,
        ):
            for member in archive:
                name = PurePosixPath(member.name)
                if not member.isfile() or name.name not in TEXTS or name.is_absolute() or ".." in name.parts:
                    continue
                left -= member.size
                if left < 0:
                    raise TooLong(f"its tests are longer than {most_bytes >> 30} GiB; unpack it yourself")
                file = into.joinpath(*name.parts)
                file.parent.mkdir(parents=True, exist_ok=True)
                _copy(archive, member, file)
    except (tarfile.TarError, EOFError, BrokenText) as error:
        if not any(into.iterdir()):
            raise UsageError(f"{path} is no archive that can be read: {error}") from None


def _copy(archive: tarfile.TarFile, member: tarfile.TarInfo, file: Path) -> None:
    content = archive.extractfile(member)
    if content is None:
        return
    with content, file.open("wb") as written:
        while block := content.read(1 << 20):
            written.write(block)


class _Stream:
    """A text as `tarfile` reads a stream."""

    def __init__(self, text: source.Text) -> None:
        self._text = text

    def read(self, size: int) -> Any:
        return self._text.read(size)
