"""One root seed, named children: taking one choice away does not reshuffle the others."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Seed:
    """A node of the seed tree; `child("link", "n1", "n2")` is the same in every process and on every machine."""

    root: int
    path: tuple[str, ...] = ()

    def child(self, *names: str) -> Seed:
        return Seed(self.root, self.path + names)

    def integer(self) -> int:
        """64 bits that depend on the root and the path alone."""
        text = "\x1f".join((str(self.root), *self.path))
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")

    def stream(self) -> random.Random:
        """A fresh source of randomness for this place."""
        return random.Random(self.integer())
