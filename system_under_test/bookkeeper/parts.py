"""What the nodes of BookKeeper are made of, where a planted bug may put something else."""

from __future__ import annotations

from dataclasses import dataclass

from system_under_test.bookkeeper.bookie.bookie import Bookie
from system_under_test.bookkeeper.entry import Digest


@dataclass(frozen=True, kw_only=True)
class BookieParts:
    bookie: type[Bookie] = Bookie
    digest: type[Digest] = Digest
