"""The command. Exit codes: 0 if the certificate holds, 3 if it is refuted, with the reason, 254 for wrong usage or a
file of another kind, 255 if this program failed."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa

from checkers.transactions.verify import WORKLOADS, Refuted, TransactionHistory, read_history, verified_against
from harness.printable import printable

HOLDS, REFUTED, WRONG_USAGE, FAILED = 0, 3, 254, 255
LARGEST_BYTES = 1 << 30
"""The largest certificate, which is read as a whole."""


class _Unreadable(Exception):
    """A file cannot be used, and why."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _Unreadable(f"{message} (see: {self.prog} --help)")


def _require_file(path: Path) -> None:
    """Raises OSError, _Unreadable."""
    path.stat()
    if not path.is_file():
        raise _Unreadable(f"{path} is no file")


def _certificate(path: Path) -> Mapping[str, Any]:
    """Raises OSError, _Unreadable."""
    _require_file(path)
    if path.stat().st_size > LARGEST_BYTES:
        raise _Unreadable(f"{path} is larger than {LARGEST_BYTES >> 20} MiB")
    with path.open("rb") as file:
        if file.peek(1)[:1] != b"{":
            raise _Unreadable(f"{path} is no certificate of transactions: it does not begin with '{{'")
        try:
            data = json.load(file)
        except (ValueError, RecursionError) as error:
            raise _Unreadable(f"{path} is no certificate of transactions: no JSON: {error}") from None
    if not {"model", "workload", "verdict"} <= data.keys():
        raise _Unreadable(f"{path} is no certificate of transactions: it lacks model, workload or verdict")
    if data["workload"] not in list(WORKLOADS):
        raise _Unreadable(f"{path} is of a workload {data['workload']!r}; known are: {', '.join(WORKLOADS)}")
    return dict(data)


def _history(path: Path, workload: str) -> TransactionHistory:
    """Raises OSError, _Unreadable, Refuted."""
    _require_file(path)
    try:
        return read_history(path, lists=WORKLOADS[workload])
    except (pa.ArrowException, ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        first = str(error).partition("\n")[0]
        raise _Unreadable(f"{path} is no history of {workload} in Parquet: {first}") from None


def verify(arguments: Sequence[str]) -> tuple[str, str | None]:
    """(what was verified, what refutes it or None). Raises _Unreadable."""
    parser = _Parser(
        prog="python -m checkers.transactions.verify",
        description="Verify a certificate of transactions against a history.",
        epilog="Exit codes: 0 it holds, 3 refuted, 254 wrong usage or no such files, 255 this program failed.",
    )
    parser.add_argument("certificate", type=Path, help="JSON, as stormproof check --certify writes it")
    parser.add_argument(
        "history", type=Path, help="Parquet; of another's history the one beside the report of its check"
    )
    given = parser.parse_args(arguments)
    try:
        certificate = _certificate(given.certificate)
        against = _history(given.history, certificate["workload"])
    except OSError as error:
        first = str(error.strerror or error).partition("\n")[0]
        raise _Unreadable(f"cannot read {error.filename or given.history}: {first}") from None
    except Refuted as reason:
        return "", str(reason)
    assumed = certificate.get("assumed")
    assuming = f", assuming {' and '.join(map(str, assumed))}" if isinstance(assumed, list) and assumed else ""
    holds = f"{certificate['verdict']} at {certificate['model']}{assuming}: the certificate holds"
    try:
        verified_against(certificate, against)
    except Refuted as reason:
        return holds, str(reason)
    return holds, None


def main(arguments: Sequence[str]) -> int:
    try:
        holds, wrong = verify(arguments)
    except _Unreadable as error:
        print(printable(f"verify: {error}"), file=sys.stderr)
        return WRONG_USAGE
    except Exception as error:  # noqa: BLE001  # the outermost boundary: a failure of ours is no refutation
        print(printable(f"verify: this program failed: {type(error).__name__}: {error}"), file=sys.stderr)
        return FAILED
    print(printable(holds if wrong is None else f"refuted: {wrong}"))
    return HOLDS if wrong is None else REFUTED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
