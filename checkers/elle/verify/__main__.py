"""The command: 0 if the certificate holds, 1 if it is refuted, with the reason; 254 if a file cannot be read."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pyarrow.parquet as pq

from checkers.elle.verify import Refuted, verified

WRONG_USAGE = 254


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(WRONG_USAGE, f"{message}\n{self.format_usage()}")


def main() -> int:
    parser = _Parser(description="Verify a certificate of transactions against a history.")
    parser.add_argument("certificate", type=Path, help="JSON, as stormproof check --certify writes it")
    parser.add_argument(
        "history", type=Path, help="Parquet; of another's history the one beside the report of its check"
    )
    arguments = parser.parse_args()
    try:
        certificate = json.loads(arguments.certificate.read_text(encoding="utf-8"))
    except OSError as error:
        parser.error(f"cannot read {arguments.certificate}: {error.strerror}")
    except (ValueError, RecursionError) as error:
        print(f"refuted: the certificate is no JSON: {error}")
        return 1
    try:
        pq.read_schema(arguments.history)
    except (OSError, pa.ArrowInvalid) as error:
        parser.error(f"{arguments.history} is no history in Parquet, such as stormproof check keeps: {error}")
    try:
        verified(certificate, arguments.history)
    except Refuted as reason:
        print(f"refuted: {reason}")
        return 1
    assuming = f", assuming {' and '.join(certificate['assumed'])}" if certificate.get("assumed") else ""
    print(f"{certificate['verdict']} at {certificate['model']}{assuming}: the certificate holds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
