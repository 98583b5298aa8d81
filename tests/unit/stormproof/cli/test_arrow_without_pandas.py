"""pyarrow does not import pandas until it is used."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from harness.arrow import start_arrow
start_arrow()
import numpy as np
import pyarrow as pa
table = pa.table({"a": pa.array(np.arange(3))})
print("pandas" in sys.modules)
print(table.to_pandas()["a"].sum(), "pandas" in sys.modules)
import pandas as pd
print(pa.array(pd.Series(["a", "b"], dtype="category")).type)
"""


def test_pandas_is_imported_when_it_is_used_and_not_before() -> None:
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == ["False", "3 True", "dictionary<values=string, indices=int8, ordered=0>"]
