"""The console script `rocketmq-admin`: imports the command once Python finds Stormproof's own packages."""

from __future__ import annotations

import sys

from stormproof.packages import require_own_packages

FAILED = 255


def main() -> None:
    try:
        require_own_packages()
    except ImportError as error:
        print(f"rocketmq-admin: {error}", file=sys.stderr)
        sys.exit(FAILED)
    from workloads.systems.rocketmq.admin.main import main as command

    command()


if __name__ == "__main__":
    main()
