"""Controller mode, the log's side: where a replica is cut when it joins a new master, and what its epochs are then.

Each line of a transcript is one replica: its epochs with their start offsets, a bar, the end of its log.
"""

from __future__ import annotations

import pytest

from system_under_test.storage.epoch_file import EpochMap, truncation_point

TRANSCRIPTS = {
    "1: the old master's unacknowledged tail goes": """
        master  e1:0 e2:900 | 900
        slave   e1:0 | 1000
        cut at  900
        slave   e1:0 e2:900 | 900
    """,
    "1: the same after the new master wrote": """
        master  e1:0 e2:900 | 1300
        slave   e1:0 | 1000
        cut at  900
        slave   e1:0 e2:900 | 900
    """,
    "2: what power took from the old master comes back": """
        master  e1:0 e2:1000 | 1000
        slave   e1:0 | 900
        cut at  900
        slave   e1:0 | 900
    """,
    "3: nothing to cut": """
        master  e1:0 e2:900 e3:1200 | 1200
        slave   e1:0 e2:900 | 1200
        cut at  1200
        slave   e1:0 e2:900 e3:1200 | 1200
    """,
    "4: a replica that missed an epoch": """
        master  e1:0 e2:900 e3:1000 | 1400
        slave   e1:0 | 1000
        cut at  900
        slave   e1:0 e2:900 | 900
    """,
    "5: two replicas of the deposed master, the longer one": """
        master  e2:500 e3:800 | 800
        slave   e2:500 | 1000
        cut at  800
        slave   e2:500 e3:800 | 800
    """,
    "5: two replicas of the deposed master, the shorter one": """
        master  e2:500 e3:800 | 800
        slave   e2:500 | 900
        cut at  800
        slave   e2:500 e3:800 | 800
    """,
    "6: an epoch unknown to the master goes whole": """
        master  e1:0 e3:1100 | 1500
        slave   e1:0 e2:1000 | 1200
        cut at  1000
        slave   e1:0 | 1000
    """,
    "7: the same epoch with another start does not count": """
        master  e1:100 e2:300 e3:450 | 700
        slave   e1:100 e2:300 e3:500 | 700
        cut at  450
        slave   e1:100 e2:300 e3:450 | 450
    """,
    "7: equal maps, the shorter end decides": """
        master  e1:100 e2:300 e3:500 | 600
        slave   e1:100 e2:300 e3:500 | 700
        cut at  600
        slave   e1:100 e2:300 e3:500 | 600
    """,
    "7: equal maps, the slave is the shorter one": """
        master  e1:100 e2:300 e3:500 | 700
        slave   e1:100 e2:300 e3:500 | 600
        cut at  600
        slave   e1:100 e2:300 e3:500 | 600
    """,
    "7: nothing in common": """
        master  e1:200 e2:500 | 700
        slave   e1:100 e2:300 e3:500 | 700
        manual repair
    """,
    "7: an epoch more than the master": """
        master  e1:100 e2:300 e3:500 | 700
        slave   e1:100 e2:300 e3:500 e4:800 | 900
        cut at  700
        slave   e1:100 e2:300 e3:500 | 700
    """,
    "an isolated master wrote under an epoch that starts where the next one does": """
        master  e1:0 e2:900 e3:900 | 1100
        slave   e1:0 e2:900 | 1000
        cut at  900
        slave   e1:0 e2:900 e3:900 | 900
    """,
}


def parse(line: str) -> tuple[EpochMap, int]:
    entries, _, end = line.partition("|")
    pairs = [entry.removeprefix("e").split(":") for entry in entries.split()]
    return EpochMap((int(epoch), int(start)) for epoch, start in pairs), int(end)


def show(epochs: EpochMap, end: int) -> str:
    return " ".join(f"e{epoch}:{start}" for epoch, start in epochs) + f" | {end}"


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_a_replica_joins_a_new_master(name: str) -> None:
    lines = [line.strip() for line in TRANSCRIPTS[name].strip().splitlines()]
    (theirs, their_end), (own, own_end) = (parse(line.split(None, 1)[1]) for line in lines[:2])
    transcript = [f"master  {show(theirs, their_end)}", f"slave   {show(own, own_end)}"]
    point = truncation_point(own, own_end, theirs, their_end)
    if point is None:
        transcript.append("manual repair")
    else:
        transcript += [f"cut at  {point}", f"slave   {show(theirs.entries_up_to(point), point)}"]
    assert transcript == lines


def test_7_a_cut_at_150_leaves_the_first_epoch() -> None:
    assert EpochMap([(1, 100), (2, 300), (3, 500)]).truncate_suffix(150) == EpochMap([(1, 100)])


def test_an_epoch_in_which_nothing_was_written_yet_outlives_a_restart() -> None:
    assert EpochMap([(1, 0), (2, 900)]).truncate_suffix(900) == EpochMap([(1, 0), (2, 900)])


def test_an_epoch_may_start_where_the_one_before_did() -> None:
    assert EpochMap([(1, 0), (2, 900)]).append(3, 900) == EpochMap([(1, 0), (2, 900), (3, 900)])


@pytest.mark.parametrize("entry", [(2, 1000), (1, 1000), (3, 899)])
def test_epochs_never_go_back(entry: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="cannot follow"):
        EpochMap([(1, 0), (2, 900)]).append(*entry)


def test_8_the_epoch_of_a_deleted_file_goes_and_the_first_start_moves_up() -> None:
    assert EpochMap([(1, 0), (2, 1570)]).delete_prefix(1700) == EpochMap([(2, 1700)])
