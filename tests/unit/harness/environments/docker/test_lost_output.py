"""What a command printed in a container is known, though the engine loses it now and then."""

from __future__ import annotations

import io
import subprocess
import tarfile
from typing import Any

import pytest

from harness.environments.docker.container import PRINTED, ContainerShell


class Forgetful:
    """An engine and its container: commands run here, below a folder, and what they print is lost."""

    def __init__(self, folder: Any, *, loses: bool) -> None:
        self.id, self.api, self._folder, self._loses = "c1", self, folder, loses
        self._ran: subprocess.CompletedProcess[bytes] | None = None

    def exec_create(self, container: str, argv: list[str], user: str) -> dict[str, str]:
        here = [word.replace(PRINTED, f"{self._folder}/printed-") for word in argv]
        self._ran = subprocess.run(here, capture_output=True, check=False)
        return {"Id": "e1"}

    def exec_start(self, program: str, demux: bool) -> tuple[bytes | None, bytes | None]:
        assert self._ran is not None
        return (None, None) if self._loses else (self._ran.stdout or None, self._ran.stderr or None)

    def exec_inspect(self, program: str) -> dict[str, int]:
        assert self._ran is not None
        return {"ExitCode": self._ran.returncode}

    def get_archive(self, path: str) -> tuple[list[bytes], dict[str, str]]:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            archive.add(path.replace(PRINTED, f"{self._folder}/printed-"), arcname="printed")
        return [packed.getvalue()], {}


@pytest.mark.parametrize("loses", [False, True])
@pytest.mark.parametrize(
    ("script", "code", "printed"),
    [("echo '{\"a b\": 1}'", 0, b'{"a b": 1}\n'), ("echo half; exit 3", 3, b"half\n"), ("exit 4", 4, b"")],
)
def test_what_was_printed_comes_back_with_the_exit_code(
    tmp_path: Any, loses: bool, script: str, code: int, printed: bytes
) -> None:
    engine: Any = Forgetful(tmp_path, loses=loses)
    finished = ContainerShell(client=engine, container=engine, name="n1").run(["sh", "-c", script])
    assert (finished.exit_code, finished.output) == (code, printed)
