"""`make findings`: storm after storm against published releases of RocketMQ, unattended, and a page of what they show.

    python -m tests.rocketmq.findings.campaign --minutes 240 --page docs/findings/rocketmq.md
    python -m tests.rocketmq.findings.campaign --release 5.4.0 --workload log --nemesis partition,kill

Which storms, and in which order, is decided by the root seed (`storms`). Each is a command of its own, `stormproof
run` in containers; what came of it is a line of the file of outcomes at once (`outcomes`). A storm that was cut off
has no line and is blown again. The run's directory is kept where the verdict is not VALID, until all of them are larger
than `--keep-gb`. With `--count 0 --page FILE` only the page of what there is is written (`page`).

The exit code is 0, whatever was found: the page is to be read by a person.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.rocketmq.findings.outcomes import HARNESS_FAILED, VALID, WRONG_USAGE, Kept, Outcome, outcome_of
from tests.rocketmq.findings.page import PARTS, page
from tests.rocketmq.findings.storms import PACKAGES, SHARES, WORKLOADS, Storm, drawn

COMMAND = (sys.executable, "-m", "stormproof")
STORM_S = 90.0
ENDS_WITHIN_S = 1800.0
"""Of a storm of 90 s; one that takes longer hangs."""
VERDICT_FILE = "verdict.json"
KEPT = Path("docs/findings/rocketmq/storms.jsonl")
"""What the page is made of, so that a campaign goes on wherever the project is."""
GIGABYTE = 1_000_000_000

Blow = Callable[[Storm], Outcome | None]
"""None: it was cut off."""


class Cluster:
    """Blows storms in containers, one command each."""

    def __init__(self, runs: Path, storm_s: float, prefix: Sequence[str]) -> None:
        self.runs = runs
        self.storm_s = storm_s
        self.prefix = prefix

    def blow(self, storm: Storm) -> Outcome | None:
        runs = self.runs / f"{storm.release}-{storm.workload}-{storm.nemesis.replace(',', '-')}-{storm.seed}"
        shutil.rmtree(runs, ignore_errors=True)
        runs.mkdir(parents=True)
        command = [*self.prefix, *COMMAND, *storm.arguments(self.storm_s, str(runs)), "--progress"]
        code, words, seconds = _ended(command, runs / "words")
        if code is None or code < 0 or (code >= 128 and code not in (WRONG_USAGE, HARNESS_FAILED)):
            return None
        verdicts = sorted(runs.glob(f"*/*/{VERDICT_FILE}"))
        outcome = outcome_of(storm, code, verdicts[-1] if verdicts else None, words, seconds - self.storm_s)
        if outcome.verdict == VALID:
            shutil.rmtree(runs)
        return outcome


def _ended(command: Sequence[str], words: Path) -> tuple[int | None, str, float]:
    """The command's code, or None if it hung; its last line; and how long it took from its first line on, which comes
    after whatever a prefix waits for."""
    with words.open("wb") as file, subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=file) as process:
        asked = time.monotonic()
        begun = None
        while process.poll() is None:
            if begun is None and words.stat().st_size > 0:
                begun = time.monotonic()
            if begun is not None and time.monotonic() - begun > ENDS_WITHIN_S:
                process.terminate()
                process.wait(60)
                return None, "", 0.0
            time.sleep(0.2)
        seconds = time.monotonic() - (begun or asked)
    lines = words.read_text("utf-8", errors="replace").splitlines()
    return process.returncode, lines[-1] if lines else "", seconds


def blow_all(
    storms: Sequence[Storm],
    kept: Kept,
    blow: Blow,
    most_s: float,
    say: Callable[[str], object],
    tidy: Callable[[], object],
) -> None:
    """Those that are left, until so many seconds are over: none is begun later."""
    begun = time.monotonic()
    todo = kept.left(storms)
    say(f"{len(storms)} storms, {len(storms) - len(todo)} of them blown before")
    for place, storm in enumerate(todo, 1):
        if time.monotonic() - begun > most_s:
            say(f"{len(todo) - place + 1} left")
            return
        outcome = blow(storm)
        if outcome is None:
            say(f"{place}/{len(todo)} cut off: {storm.words()}")
            continue
        kept.add(outcome)
        say(f"{place}/{len(todo)} {outcome.line()}")
        tidy()


def keep_newest(runs: Path, most_bytes: float) -> None:
    """Removes the directories of the oldest storms until the rest is no larger than that."""
    folders = sorted((one for one in runs.iterdir() if one.is_dir()), key=lambda one: one.stat().st_mtime, reverse=True)
    total = 0
    for folder in folders:
        total += sum(file.lstat().st_size for file in folder.rglob("*") if not file.is_dir())
        if total > most_bytes:
            shutil.rmtree(folder)


def _print_at_once(line: str) -> None:
    print(line, flush=True)


def main(arguments: list[str] | None = None, say: Callable[[str], object] = _print_at_once) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--outcomes", type=Path, default=KEPT, help=f"a file that is added to ({KEPT})")
    parser.add_argument("--runs", type=Path, default=Path("runs/findings"), help="where run directories are kept")
    parser.add_argument("--keep-gb", type=float, default=20.0, help="of run directories, the newest (20)")
    parser.add_argument("--count", type=int, default=60, help="storms of all releases together (60)")
    parser.add_argument("--root", type=int, default=1, help="the root seed (1)")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no storm later than that")
    parser.add_argument("--storm-s", type=float, default=STORM_S, help="seconds a storm lasts (90)")
    parser.add_argument("--release", action="append", help=f"only these; may be repeated ({', '.join(SHARES)})")
    parser.add_argument(
        "--workload", action="append", help="only these, or several at once as log+pop; may be repeated"
    )
    parser.add_argument("--nemesis", action="append", help="only these packages; may be repeated")
    parser.add_argument("--prefix", type=shlex.split, default=[], help="before each command, such as 'flock FILE'")
    parser.add_argument("--page", type=Path, help="write what it came to as Markdown")
    chosen = parser.parse_args(arguments)
    shares = {release: SHARES.get(release, 1) for release in chosen.release or SHARES}
    storms = drawn(chosen.root, chosen.count, shares, chosen.workload or WORKLOADS, chosen.nemesis or PACKAGES)
    kept = Kept(chosen.outcomes)
    chosen.runs.mkdir(parents=True, exist_ok=True)
    cluster = Cluster(chosen.runs, chosen.storm_s, chosen.prefix)
    if storms:
        blow_all(
            storms,
            kept,
            cluster.blow,
            chosen.minutes * 60,
            say,
            lambda: keep_newest(chosen.runs, chosen.keep_gb * GIGABYTE),
        )
    if chosen.page is not None:
        chosen.page.write_text(page(kept.outcomes(), PARTS), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
