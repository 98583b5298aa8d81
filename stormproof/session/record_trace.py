"""Runs a stored scenario in this process alone and keeps its whole event trace.

For `stormproof replay`, which starts it twice under different PYTHONHASHSEEDs to find what is not deterministic.
"""

from __future__ import annotations

import sys
from pathlib import Path

from harness.record.run_record import read_run_record
from stormproof.session.engines import HERE
from stormproof.session.run import run_scenario


def main(stored: Path, runs: Path, recording: Path) -> None:
    run_scenario(read_run_record(stored).scenario, runs=runs, options=HERE, recording=recording)


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:4]))
