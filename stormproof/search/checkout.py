"""A git checkout as far as bisecting needs it: which commits there are, and what lay in them. It is only read."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.bounds import quote
from harness.errors import HarnessError, UsageError


@dataclass(frozen=True)
class Checkout:
    """By its topmost directory."""

    root: Path

    @classmethod
    def around(cls, directory: Path) -> Checkout:
        """Raises UsageError where there is none."""
        ran = _git(directory, "rev-parse", "--show-toplevel")
        if ran.returncode:
            raise UsageError(f"{directory} lies in no git checkout; go to that of the system, and run it there")
        return cls(Path(ran.stdout.decode().removesuffix("\n")))

    def commit(self, revision: str) -> str:
        """Its full hash. Raises UsageError."""
        ran = _git(self.root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        if ran.returncode or not revision.strip():
            raise UsageError(f"{self.root} has no revision {quote(revision)}; name a commit, a branch or a tag")
        return ran.stdout.decode().strip()

    def between(self, good: str, bad: str) -> tuple[str, ...]:
        """The commits after `good`, up to `bad` and with it, oldest first; of merges the side merged into.

        Raises UsageError where `bad` does not come after `good`.
        """
        if good == bad or _git(self.root, "merge-base", "--is-ancestor", good, bad).returncode:
            raise UsageError(f"{bad[:12]} does not come after {good[:12]}; give the older revision first, as good..bad")
        listed = _git(self.root, "rev-list", "--reverse", "--first-parent", f"{good}..{bad}")
        return tuple(listed.stdout.decode().split())

    def subject(self, commit: str) -> str:
        return _git(self.root, "log", "-1", "--format=%s", commit).stdout.decode(errors="replace").strip()

    def holds(self, commit: str, path: str) -> bool:
        return bool(_git(self.root, "ls-tree", "--name-only", commit, "--", path).stdout.strip())

    def extract(self, commit: str, paths: Sequence[str], into: Path) -> None:
        """What lay at these paths, as far as it did; at none of them: everything. Raises HarnessError."""
        held = [path for path in paths if self.holds(commit, path)]
        ran = _git(self.root, "archive", "--format=tar", commit, "--", *held)
        if ran.returncode:
            raise HarnessError(f"git archive {commit[:12]} failed: {ran.stderr.decode(errors='replace').strip()}")
        with tarfile.open(fileobj=io.BytesIO(ran.stdout)) as archive:
            archive.extractall(into, filter="data")


def _git(directory: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Raises UsageError where there is no git."""
    try:
        return subprocess.run(["git", "-C", str(directory), *arguments], capture_output=True, check=False)
    except FileNotFoundError:
        raise UsageError("bisecting needs git, which is not installed") from None
