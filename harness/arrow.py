"""Starting pyarrow without pandas, for processes of our own."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


def start_arrow() -> None:
    """Import pyarrow, and let it find no pandas where it looks for one, which is when the first array is made.

    It asks only whether what it is given is of pandas, which nothing here is, and importing pandas takes longer than
    to judge a small history. A later import of pandas works, also that by pyarrow where it has to.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    hidden = _Hidden()
    sys.meta_path.insert(0, hidden)
    try:
        pa.array(())
    finally:
        sys.meta_path.remove(hidden)


class _Hidden(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is not needed to make an array", name=fullname)
        return None
