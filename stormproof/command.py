"""The console script `stormproof`: makes sure that Python finds Stormproof's own packages before it imports them."""

from __future__ import annotations

import sys

from stormproof.packages import require_own_packages

HARNESS_FAILED = 255


def main() -> None:
    try:
        require_own_packages()
    except ImportError as error:
        print(f"stormproof: {error}", file=sys.stderr)
        sys.exit(HARNESS_FAILED)
    from stormproof.cli.main import main as command

    command()


if __name__ == "__main__":
    main()
