"""The commit since which a storm fails is found, whatever cannot be tried, and nothing of the checkout is touched."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UsageError
from harness.progress import unwatched
from harness.record.scenario import Scenario
from stormproof.cli import main
from stormproof.search.bisection import Since, Tried, halved, since
from stormproof.search.checkout import Checkout
from stormproof.search.storm_file import StormFile, storm_text

HERE = Path(__file__).resolve().parents[2]
GIT = ("git", "-c", "user.name=somebody", "-c", "user.email=somebody@example.org", "-c", "commit.gpgsign=false")


def git(directory: Path, *arguments: str) -> str:
    return subprocess.run([*GIT, "-C", str(directory), *arguments], check=True, capture_output=True, text=True).stdout


def commit(directory: Path, subject: str) -> str:
    git(directory, "add", "--all")
    git(directory, "commit", "--quiet", "--allow-empty", "--message", subject)
    return git(directory, "rev-parse", "HEAD").strip()


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> tuple[Checkout, list[str]]:
    """A checkout with twelve commits."""
    root = tmp_path_factory.mktemp("checkout")
    git(root, "init", "--quiet")
    return Checkout.around(root), [commit(root, f"commit {number}") for number in range(12)]


@given(st.integers(1, 40), st.integers(0, 40), st.sets(st.integers(1, 80)))
def test_the_first_that_fails_is_found_whatever_cannot_be_tried(first: int, more: int, untold: set[int]) -> None:
    last, asked = first + more, list[int]()

    def fails(place: int) -> bool | None:
        asked.append(place)
        return None if place in untold - {last} else place >= first

    low, high = halved(last + 1, fails)
    assert low < first <= high
    assert all(place in untold for place in range(low + 1, high))
    assert len(asked) == len(set(asked))
    assert untold or len(asked) <= 7


def test_commits_are_tried_until_one_is_told(history: tuple[Checkout, list[str]]) -> None:
    checkout, commits = history
    said: list[str] = []
    tries = {commit: Tried(fails=place >= 7) for place, commit in enumerate(commits)}
    found = since(checkout, "HEAD~11", "HEAD", tries.__getitem__, lambda news: said.append(str(news)))
    assert found == Since(commits=(commits[7],), tried=len(said))
    assert f"{commits[7][:12]} fails (commit 7)" in said and len(said) <= 6


@pytest.mark.parametrize(
    ("good", "bad", "fails", "words"),
    [
        ("nowhere", "HEAD", {}, "has no revision 'nowhere'; name a commit, a branch or a tag"),
        ("HEAD~3", "--all", {}, "has no revision '--all'"),
        ("HEAD", "HEAD~3", {}, "does not come after"),
        ("HEAD", "HEAD", {}, "does not come after"),
        ("HEAD~3", "HEAD", {8: True, 11: True}, r"fails at the good revision, too \(HEAD~3\)"),
        ("HEAD~3", "HEAD", {8: False, 11: False}, r"does not fail at the bad revision \(HEAD\)"),
        ("HEAD~3", "HEAD", {8: False, 11: None}, r"HEAD cannot be tried \(ImportError\); name another revision"),
    ],
)
def test_revisions_between_which_nothing_can_be_found_are_refused(
    history: tuple[Checkout, list[str]], good: str, bad: str, fails: Mapping[int, bool | None], words: str
) -> None:
    checkout, commits = history
    with pytest.raises(UsageError, match=words):
        since(checkout, good, bad, lambda c: Tried(fails=fails[commits.index(c)], why="ImportError"), unwatched)


Command = Callable[..., tuple[int, str]]


@pytest.fixture
def stormproof(capsys: pytest.CaptureFixture[str]) -> Command:
    def command(*arguments: str) -> tuple[int, str]:
        code = main.run(list(arguments))
        answered = capsys.readouterr()
        return code, answered.out + answered.err

    return command


STORM = StormFile(
    scenario=Scenario(
        system="rocketmq",
        workload="queue",
        schedule=("4.5 for 0.5 power off b1 [power 0]",),
        settings={"brokers": 1, "controllers": 1, "min_in_sync_replicas": 1, "queues": 1},
        mutant="flush-lie",
        world="calm",
        concurrency=2,
        rate=20.0,
        operations="70-95",
        time_limit_s=5.0,
        recovery_s=5.0,
    ),
    anomaly="lost",
    trace="0" * 32,
)


@pytest.mark.parametrize(
    ("revisions", "words"),
    [
        ("HEAD", "the revisions are two with two dots between them, as in v1.2..HEAD, got 'HEAD'"),
        ("a...b", "the revisions are two with two dots between them"),
        ("HEAD..HEAD", "lies in no git checkout; go to that of the system, and run it there"),
    ],
)
def test_what_cannot_be_bisected_is_refused(
    stormproof: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, revisions: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    Path("lost.storm.toml").write_text(storm_text(STORM))
    code, said = stormproof("bisect", "lost.storm.toml", revisions)
    assert code == 254
    assert words in said


def test_a_checkout_without_the_system_is_refused(
    stormproof: Command, history: tuple[Checkout, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout, _ = history
    (tmp_path / "lost.storm.toml").write_text(storm_text(STORM))
    monkeypatch.chdir(checkout.root)
    code, said = stormproof("bisect", str(tmp_path / "lost.storm.toml"), "HEAD~1..HEAD")
    assert code == 254
    assert "rocketmq does not lie in" in said


@pytest.mark.gate
def test_the_commit_that_brought_a_bug_is_told(
    stormproof: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "checkout"
    for folder in ("system_under_test", "workloads/systems"):
        shutil.copytree(HERE / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    git(tmp_path, "init", "--quiet", "checkout")
    lying = root / "system_under_test" / "rocketmq" / "mutants" / "flush_lie.py"
    as_it_is = lying.read_text()
    was_honest = re.sub(r"parts=\(BrokerParts\(.*\),\),", "parts=(),", as_it_is)
    assert was_honest != as_it_is
    lying.write_text(was_honest)
    good = commit(root, "honest")
    commit(root, "nothing")
    for text, subject in (("cannot be imported", "torn"), (was_honest, "mended"), (as_it_is, "lies")):
        lying.write_text(text)
        last = commit(root, subject)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr(tempfile, "tempdir", None)
    (tmp_path / "lost.storm.toml").write_text(storm_text(STORM))
    monkeypatch.chdir(root)
    code, said = stormproof("bisect", str(tmp_path / "lost.storm.toml"), f"{good}..HEAD", "--progress")
    assert code == 0, said
    assert f"since     {last[:12]} lies\n" in said
    assert "cannot be tried: SyntaxError" in said
    assert not list(scratch.glob("stormproof-*"))
    assert git(root, "status", "--porcelain") == "" and len(git(root, "worktree", "list").splitlines()) == 1
