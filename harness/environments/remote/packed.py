"""Files as an archive that is unpacked where they are needed."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping


def tar_of(files: Mapping[str, bytes], *, mode: int = 0o644) -> bytes:
    """The same bytes for the same files, by path; directories are made when it is unpacked."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, data in sorted(files.items()):
            entry = tarfile.TarInfo(name.lstrip("/"))
            entry.size, entry.mode = len(data), mode
            archive.addfile(entry, io.BytesIO(data))
    return packed.getvalue()
