"""Carries a storm out with a system as it lay in another directory, and the harness as it is.

`python -m stormproof.search.revision_runner FILE DIRECTORY` prints one JSON object: whether the storm shows its
anomaly, or why nothing can be said; it ends with an exception where the two do not fit together. It is a process of its
own, as modules of two revisions cannot live in one.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

SYSTEMS = "workloads.systems"
"""Where adapters lie that come with the harness."""


def main(file: Path, directory: Path) -> None:
    """Modules that lie in the directory hide those of the same name."""
    sys.path.insert(0, str(directory))
    systems = directory.joinpath(*SYSTEMS.split("."))
    if systems.is_dir():
        package = import_module(SYSTEMS)
        package.__path__ = [str(systems), *package.__path__]
    print(json.dumps(_tried(file)))


def _tried(file: Path) -> dict[str, Any]:
    # Not before: it imports the system.
    from stormproof.search.storm import blown_and_judged
    from stormproof.search.storm_file import load_storm

    storm, parts = load_storm(file)
    judged = blown_and_judged(storm.scenario, parts)
    shows = storm.anomaly in judged.anomalies
    if not shows and not judged.blown.facts.complete:
        return {"fails": None, "why": "; ".join(judged.blown.facts.reasons) or "the storm was cut short"}
    return {"fails": shows, "why": ""}


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
