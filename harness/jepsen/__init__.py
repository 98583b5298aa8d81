"""Histories that others recorded: read once, in a stream, into our own columns; and ours, written for others.

    convert(Path("history.edn"), Path("history.parquet"), Shape(value_type=pa.struct([("value", pa.int64())])))
    file.writelines(exported(read_history(Path("history.parquet")), Format.EDN))

Read are EDN and JSON as Jepsen writes them (a vector, a list, or one map a line) and Jepsen's textual log lines; which
of them a file holds is seen from its first characters, not from its name. A file may be larger than memory.
"""

from harness.jepsen.beside import Beside, NemesisAct
from harness.jepsen.convert import convert, held, located
from harness.jepsen.export import Format, exported
from harness.jepsen.shape import Shape

__all__ = ["Beside", "Format", "NemesisAct", "Shape", "convert", "exported", "held", "located"]
