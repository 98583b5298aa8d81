"""Histories of transactions as other checkers write them: sessions of transactions on registers, without times.

    notation = recognised(Path("hist.txt"))
    if notation is not None:
        write_rows(notation.read(Path("hist.txt")), Path("rows.json"))

Which notation a file or a directory has is seen from its bytes. Each has a small reader of its own in this room.
"""

from harness.notations.notation import Notation, recognised
from harness.notations.sessions import Sessions, write_rows

__all__ = ["Notation", "Sessions", "recognised", "write_rows"]
