"""Runs a stored scenario in this process alone and keeps its whole event trace.

For `stormproof replay`, which starts it twice under different PYTHONHASHSEEDs to find what is not deterministic.
"""

from __future__ import annotations

import sys
from pathlib import Path

from harness.session.judge import read_scenario, run_scenario


def main(stored: Path, runs: Path, recording: Path) -> None:
    scenario, _ = read_scenario(stored)
    run_scenario(scenario, runs=runs, engine="inprocess", recording=recording)


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:4]))
