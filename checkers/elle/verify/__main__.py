"""The command: 0 if the certificate holds, 1 if it is refuted, with the reason."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from checkers.elle.verify import Refuted, verified


def main() -> int:
    parser = argparse.ArgumentParser(description="Verify a certificate of transactions against a history.")
    parser.add_argument("certificate", type=Path)
    parser.add_argument("history", type=Path)
    arguments = parser.parse_args()
    try:
        certificate = json.loads(arguments.certificate.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        print(f"refuted: the certificate is no JSON: {error}")
        return 1
    try:
        verified(certificate, arguments.history)
    except Refuted as reason:
        print(f"refuted: {reason}")
        return 1
    print(f"{certificate['verdict']} at {certificate['model']}: the certificate holds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
