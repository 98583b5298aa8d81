"""Files of millions of operations are read in the memory that one block takes, and their faults are found in place."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

MOST_MIB = 500
"""Some 300 are needed by Arrow, numba and one block, however long the file is."""
CONVERT = """
import json, re, sys
from pathlib import Path
import pyarrow as pa
from harness.jepsen import Shape, convert
from harness.record.history import MalformedHistory
try:
    convert(Path(sys.argv[1]), Path(sys.argv[1] + ".parquet"), Shape(value_type=pa.struct([("value", pa.int64())])))
except MalformedHistory as found:
    reported = {"row": found.position, "line": found.line, "byte": found.byte, "reason": found.reason}
    # The peak that getrusage returns begins with what the parent had when it forked.
    peak_kib = int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1])
    print(json.dumps(reported | {"mib": peak_kib >> 10}))
"""

EDN = "{:process 1, :type :invoke, :f :read, :value nil}\n{:process 1, :type :ok, :f :read, :value 3}\n"
JSON = '{"process":1,"type":"invoke","f":"read","value":null}\n{"process":1,"type":"ok","f":"read","value":3}\n'
LOG = "INFO  jepsen.util - 1\t:invoke\t:read\tnil\nINFO  jepsen.util - 1\t:ok\t:read\t3\n"


FILES = {
    "edn": ("", EDN, "{:process 1, :type :inv\n", "where its next key should be"),
    "edn-bracket": (
        "",
        EDN,
        "{:process 1, :type :invoke, :f :read, :value [1 2\n",
        "another operation begins within this one",
    ),
    "edn-string": ("", EDN, '{:process 1, :type :invoke, :f :read, :value "a\n', "a string does not end"),
    "edn-vector": ("[", EDN.replace("\n", " "), "{:process 1, :type :inv ", "where its next key should be"),
    "json": ("", JSON, '{"process":1,"type":"inv\n', "no JSON: Invalid control character"),
    "json-array": (
        "[",
        JSON.replace("\n", ","),
        '{"process":1,"type":"invoke",,',
        "no JSON: Expecting property name",
    ),
    "log": ("", LOG, "INFO  jepsen.util - 1\t:invoke\t:read\n", "nor a line of Jepsen's log"),
    "no-history": ("", EDN, EDN.splitlines()[1] + "\n", "ok of read without an open invocation"),
}
"""What a file begins with, what it repeats, where it is broken, and how that is reported."""
ONE_A_READER = ("json", "log", "edn-vector", "json-array")
"""Of each way to go through a file; how it is broken at its end is the matter of short files as well."""
MILLIONS = [
    ("edn", 1, pytest.mark.slow),
    *((name, 1, pytest.mark.gate) for name in ONE_A_READER),
    *((name, 3, pytest.mark.thorough) for name in FILES),
]


@pytest.mark.parametrize(
    ("name", "millions"), [pytest.param(name, millions, marks=mark) for name, millions, mark in MILLIONS]
)
def test_a_fault_millions_of_lines_in_is_reported_with_its_place_in_bounded_memory(
    name: str, millions: int, tmp_path: Path
) -> None:
    begin, pair, broken, reason = FILES[name]
    lines = millions * 1_000_000
    path = tmp_path / "long"
    with path.open("w") as file:
        file.write(begin)
        for _ in range(lines // 20_000):
            file.write(pair * 10_000)
        file.write(broken + pair * 200)
    ran = subprocess.run([sys.executable, "-c", CONVERT, str(path)], capture_output=True, text=True, check=True)
    reported = json.loads(ran.stdout)
    assert reported["row"] == lines
    assert reported["line"] == (lines + 1 if "\n" in pair else 1)
    assert reported["byte"] == len(begin) + len(pair) * lines // 2
    assert reason in reported["reason"]
    assert reported["mib"] < MOST_MIB
