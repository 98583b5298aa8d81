"""Every planted bug searched for from random starts, guided and at random; what was found first is made small.

    python -m tests.rocketmq.mutants.searches --roots 5 --jobs 2 --page docs/planted-bugs/rocketmq.md

Those of another system of ours with `--system`. Everything is kept in a directory (`--into`), and the same command goes
on with it:

    explored/planted-bugs-of-rocketmq/
      searches/flush-lie-guided-0.json      how this search ended: a `Chase`
      shrunk/flush-lie-guided-0.json        its catch made small: a row of SHRUNK, and more
      found/flush-lie-guided-0.storm.toml   the same for `stormproof replay`

A file is there whole or not at all; at most the searches under way are lost. A search that caught nothing is made again
where it is given more than it had, or another workload or other settings (`search_settings.py`). `--part 1/3` makes a
third of the searches, on a machine of its own: put the directories together, and let the command without it do the
rest. `--guided` leaves the searches at random out. The revisions at which searches were begun are kept in
`revisions`, for the page.

Searches first, root seed by root seed; then the smallest catch of each bug is shrunk. With `--roots 0
--shrink 0 --page FILE` only the page of what there is is written. Exits with 1 unless every bug was caught.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from stormproof.search.checkout import Checkout
from stormproof.search.compare import Chase, Each, both_ways, chase_words, chased_row, learned_nothing, shrunk_catch
from stormproof.search.mutate import entries_in
from stormproof.search.search import Search
from stormproof.search.space import Space
from stormproof.search.store import write_whole
from stormproof.search.storm_file import SUFFIX, StormFile, storm_text
from stormproof.search.trial import scenario_of
from stormproof.session import registry
from tests.rocketmq.mutants.search_settings import space_for
from tests.rocketmq.mutants.searches_page import Small, page

REVISION_LENGTH = 10
TASKS_PER_CHILD = 10
"""A worker is replaced now and then: a process that has run hundreds of simulations has grown for nothing."""


class Kept:
    """What a campaign came to so far, in its directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        for folder in ("searches", "shrunk", "found"):
            (directory / folder).mkdir(parents=True, exist_ok=True)

    def chases(self) -> list[Chase]:
        return [Chase.from_json(row) for row in self._rows("searches")]

    def small(self) -> list[Small]:
        return [Small(row) for row in self._rows("shrunk")]

    def add_chase(self, row: Mapping[str, Any]) -> Chase:
        chase = Chase.from_json(row)
        self._write("searches", name_of(chase), row)
        return chase

    def add_small(self, row: Mapping[str, Any]) -> Small:
        small = Small(row)
        if row["trace"]:
            storm = StormFile(scenario=scenario_of(row), anomaly=row["anomaly"], trace=row["trace"])
            path = self.directory / "found" / f"{small.name}{SUFFIX}"
            write_whole(path, storm_text(storm, [row["words"]]).encode())
        self._write("shrunk", small.name, row)
        return small

    def revisions(self) -> tuple[str, ...]:
        """At which searches were begun, the oldest first."""
        file = self.directory / "revisions"
        return tuple(file.read_text("utf-8").split()) if file.exists() else ()

    def add_revision(self, revision: str) -> None:
        revisions = [*(known for known in self.revisions() if known != revision), revision]
        write_whole(self.directory / "revisions", "".join(f"{known}\n" for known in revisions).encode())

    def _rows(self, folder: str) -> Iterator[dict[str, Any]]:
        return (json.loads(file.read_text("utf-8")) for file in sorted((self.directory / folder).glob("*.json")))

    def _write(self, folder: str, name: str, row: Mapping[str, Any]) -> None:
        write_whole(self.directory / folder / f"{name}.json", json.dumps(row, indent=1, sort_keys=True).encode())


def name_of(chase: Chase) -> str:
    return f"{chase.mutant}-{'guided' if chase.is_guided else 'random'}-{chase.root}"


def searches_for(spaces: Sequence[Space], roots: int, most_storms: int | None) -> list[Search]:
    """Root seed by root seed: a campaign that is ended early tells something of every bug."""
    numbers = None if most_storms is None else range(most_storms)
    searches = [one for space in spaces for one in both_ways(Search(space=space, root=0, numbers=numbers), roots)]
    return sorted(searches, key=lambda search: search.root)


def left(searches: Sequence[Search], chases: Sequence[Chase], most_processor_s: float | None) -> list[Search]:
    """The searches that were not made yet, or with less than they are given now."""
    ended = {(chase.mutant, chase.root, chase.is_guided): chase for chase in chases}

    def is_done(search: Search) -> bool:
        chase = ended.get((search.space.mutant, search.root, search.is_guided))
        if chase is None or chase.given != search.space.fixed_settings:
            return False
        if chase.is_caught:
            return True
        tried_all = search.numbers is not None and chase.storms >= len(search.numbers)
        return tried_all or (most_processor_s is not None and chase.processor_s >= most_processor_s)

    return [search for search in searches if not is_done(search)]


def search_all(
    searches: Sequence[Search], most_processor_s: float | None, kept: Kept, each: Each, say: Callable[[str], object]
) -> None:
    """The guided ones first: where one caught its bug before it had learned anything, the random one is the same."""
    todo = left(searches, kept.chases(), most_processor_s)
    say(f"{len(searches)} searches, {len(searches) - len(todo)} of them made before")
    for is_guided in (True, False):
        some = [search for search in todo if search.is_guided is is_guided]
        same = {} if is_guided else {(c.mutant, c.root): c for c in kept.chases() if c.is_guided and learned_nothing(c)}
        for search in some:
            if (search.space.mutant, search.root) in same:
                kept.add_chase(replace(same[search.space.mutant, search.root], is_guided=False).to_json())
        some = [search for search in some if (search.space.mutant, search.root) not in same]
        for place, row in enumerate(each(partial(chased_row, most_processor_s), some), 1):
            chase = kept.add_chase(row)
            say(f"{place}/{len(some)} {chase_words(chase, str(chase.mutant))}")


def shrink_all(
    mutants: Sequence[str], of_one: int, most_seconds: float, kept: Kept, each: Each, say: Callable[[str], object]
) -> None:
    """The smallest catches of each, at most so many, until one of them fits its page."""
    for count in range(1, of_one + 1):
        small = kept.small()
        known, fitting = {one.name for one in small}, {one.mutant for one in small if one.fits}
        chosen = {mutant: smallest(mutant, kept.chases())[:count] for mutant in mutants if mutant not in fitting}
        todo = [chase for chases in chosen.values() for chase in chases if name_of(chase) not in known]
        for row in each(partial(shrunk_catch, most_seconds), todo):
            one = kept.add_small(row)
            say(f"{one.name}, shrunk: faults {one.faults}, operations {one.operations}; {row['words']}")


def smallest(mutant: str, chases: Sequence[Chase]) -> list[Chase]:
    """The catches of a bug, those of few faults and little load first; of each, the anomaly that most share comes
    first, as the others may follow from it."""
    catches = [chase for chase in chases if chase.mutant == mutant and chase.is_caught]
    shared = Counter(anomaly for chase in catches for anomaly in chase.anomalies)

    def size(chase: Chase) -> tuple[int, float]:
        assert chase.scenario is not None
        return len(entries_in(chase.scenario)), chase.scenario.time_limit_s * chase.scenario.rate

    return [
        replace(chase, anomalies=tuple(sorted(chase.anomalies, key=lambda anomaly: -shared[anomaly])))
        for chase in sorted(catches, key=size)
    ]


def in_processes(jobs: int) -> Each:
    def each(make: Callable[[Any], dict[str, Any]], tasks: Sequence[Any]) -> Iterator[dict[str, Any]]:
        with multiprocessing.get_context("spawn").Pool(jobs, maxtasksperchild=TASKS_PER_CHILD) as pool:
            yield from pool.imap_unordered(make, tasks)

    return each


def on_spark(master: str) -> Each:
    from checkers.spark.session import spark_session
    from stormproof.search.spark_runner import OnSpark

    return OnSpark(spark_session(master)).as_done


def _part(text: str) -> tuple[int, int]:
    number, _, of = text.partition("/")
    if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
        raise argparse.ArgumentTypeError(f"takes a part of all, such as 1/3, got {text!r}")
    return int(number), int(of)


def _revision() -> str:
    """Of this checkout, in few characters. Raises UsageError where it is none."""
    return Checkout.around(Path(__file__).parent).commit("HEAD")[:REVISION_LENGTH]


def _print_at_once(line: str) -> None:
    print(line, flush=True)


def main(arguments: list[str] | None = None, say: Callable[[str], object] = _print_at_once) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--system", default="rocketmq")
    parser.add_argument("--mutant", action="append", help="only these; may be repeated")
    parser.add_argument("--roots", type=int, default=5, help="root seeds from 0 on")
    parser.add_argument("--for", dest="seconds", type=float, default=300.0, help="processor seconds of each search")
    parser.add_argument("--storms", type=int, help="of each search, at most")
    parser.add_argument("--guided", action="store_true", help="no searches at random, to compare with")
    parser.add_argument("--shrink", type=int, default=2, help="storms of each bug, at most")
    parser.add_argument("--shrink-for", type=float, default=300.0, help="processor seconds of each")
    parser.add_argument("--into", type=Path, help="explored/planted-bugs-of-SYSTEM unless said otherwise")
    parser.add_argument("--part", type=_part, default=(1, 1), help="1/3: the first of three, and nothing is shrunk")
    parser.add_argument("--jobs", type=int, default=multiprocessing.cpu_count(), help="processes, without --master")
    parser.add_argument("--master", help="Spark's, instead of processes of this machine")
    parser.add_argument("--page", type=Path, help="write what it came to as Markdown")
    chosen = parser.parse_args(arguments)
    known = registry.system(chosen.system).mutants
    mutants = [name for name in sorted(known) if chosen.mutant is None or name in chosen.mutant]
    if not set(chosen.mutant or ()) <= set(known):
        parser.error(f"--mutant takes the name of one: {', '.join(sorted(known))}")
    each = on_spark(chosen.master) if chosen.master else in_processes(chosen.jobs)
    number, of = chosen.part
    searches = searches_for([space_for(mutant, chosen.system) for mutant in mutants], chosen.roots, chosen.storms)
    searches = [search for search in searches if search.is_guided or not chosen.guided][number - 1 :: of]
    kept = Kept(chosen.into or Path(f"explored/planted-bugs-of-{chosen.system}"))
    if searches:
        kept.add_revision(_revision())
    search_all(searches, chosen.seconds, kept, each, say)
    if of == 1:
        shrink_all(mutants, chosen.shrink, chosen.shrink_for, kept, each, say)
    if chosen.page is not None:
        chosen.page.write_text(
            page(known, kept.chases(), kept.small(), kept.revisions(), chosen.system), encoding="utf-8"
        )
    missed = sorted(set(mutants) - {chase.mutant for chase in kept.chases() if chase.is_caught})
    say(f"not caught: {', '.join(missed) or 'none'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
