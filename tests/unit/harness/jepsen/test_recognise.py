"""What a history is one of is seen from its operations, and not guessed."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.jepsen.recognise import recognised

KINDS = {
    "--workload queue": ["enqueue 1 1", "dequeue nil 1", "drain nil [2]"],
    "--workload set": ["add 0 0", "read nil #{0}"],
    "--workload set (lifted)": ["add [3 0] [3 0]", "read [3 nil] [3 #{0}]"],
    "--workload set (two)": ["add 0 0", "read nil [0 1]"],
    "--workload counter": ["add 2 2", "read nil 2"],
    "--workload bank": ["transfer {:from 0, :to 1, :amount 3} nil", "read nil {0 10, 1 13}"],
    "--workload long-fork": ["write [[:w 0 1]] [[:w 0 1]]", "read [[:r 0 nil][:r 1 nil]] [[:r 0 1][:r 1 nil]]"],
    "--workload causal": ["read-init [0 nil] [0 0]", "write [0 1] [0 1]", "read [0 nil] [0 1]"],
    "--workload causal-reverse": ["write [7 0] [7 0]", "read [7 nil] [7 #{0}]"],
    "--workload monotonic": ["inc 5 {5 1}", "read {5 nil} {5 1}"],
    "--workload unique-ids": ["generate nil 5"],
    "--workload list-append": ["txn [[:r 2 nil]] [[:r 2 [1]]]", "txn [[:append 1 1]] [[:append 1 1]]"],
    "--workload rw-register": ["txn [[:w 1 1]] [[:w 1 1]]"],
    "--workload rw-register (tagged)": ["write [[:w 1 1]] [[:w 1 1]]", "txn [[:w 1 2][:r 1 nil]] [[:w 1 2][:r 1 2]]"],
    "--workload rw-register (writes)": ["write [[:w 1 1][:w 2 1]] [[:w 1 1][:w 2 1]]"],
    "--workload list-append (tagged)": ["read [[:r 1 nil]] [[:r 1 [1]]]", "txn [[:append 1 1]] [[:append 1 1]]"],
    "--model cas-register": ["write 1 1", "cas [1 2] [1 2]", "read nil 2"],
    "--model cas-register (lifted)": ["write [4 1] [4 1]", "cas [4 [1 2]] [4 [1 2]]", "read [4 nil] [4 2]"],
    "--model cas-register (empty)": ["write 1 1", "read nil nil"],
    "--model cas-register (read alone)": ["read nil 5"],
    "--model cas-register (began with 0, or not)": ["read nil 0", "write 1 1", "read nil 1"],
    "--model cas-register (cas)": ["write 0 0", "cas [0 1] [0 1]", "read nil 1"],
    "--model cas-register (of several)": ["read [1 nil] [1 0]", "read [2 nil] [2 nil]", "write [1 3] [1 3]"],
    "--model cas-register (written)": ["write 0 0", "read nil 0"],
    "--workload set --function broadcast=add": ["broadcast 1 1", "read nil nil"],
    "--workload counter --function credit=add": ["credit 1 1", "read nil nil"],
    "--model map": ['put "x" "x"', 'get nil "x"'],
    "--model echo": ['echo "a" {:type"echo_ok",:echo"a"}'],
    "--model mutex": ["acquire nil nil", "release nil nil"],
    "--workload log --set writes=interleaved": ["assign [1 2] [1 2]", "poll [[:poll]] [[:poll{1[[0 1]]}]]"],
    "--workload log": ["send {:message 1} {:message 1}", "poll nil {:messages []}"],
}


def seen(tmp_path: Path, operations: list[str]) -> tuple[tuple[str, ...], str]:
    lines = ["{:process :nemesis, :type :info, :f :kill, :value 3}\n"]
    for operation in operations:
        f, asked, answered = _parts(operation)
        for kind, value in (("invoke", asked), ("ok", answered)):
            lines.append(f"{{:process 0, :type :{kind}, :f :{f}, :value {value}}}\n")
    (tmp_path / "h.edn").write_text("".join(lines))
    found = recognised(tmp_path / "h.edn")
    return tuple(kind.words() for kind in found.kinds), found.seen


def _parts(operation: str) -> tuple[str, str, str]:
    """The function, and two forms whose brackets may have blanks in them."""
    f, rest = operation.split(" ", 1)
    depth = 0
    for at, character in enumerate(rest):
        depth += (character in "[{(") - (character in "]})")
        if character == " " and depth == 0:
            return f, rest[:at], rest[at + 1 :]
    raise AssertionError(operation)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_seen_from_its_operations(kind: str, tmp_path: Path) -> None:
    assert seen(tmp_path, KINDS[kind])[0] == (kind.split(" (")[0],)


@pytest.mark.parametrize(
    ("operations", "kinds", "words"),
    [
        (["frob 1 1"], (), "frob (integers)"),
        (["add 1 1", "read nil nil"], ("--workload set", "--workload counter"), "add (integers), read"),
        (["add 1 1", "read nil 1", "remove 1 1"], (), "add (integers), read (→ integers), remove (integers)"),
        (["read nil [5]"], (), "read (→ collections)"),
        (["write 1 1"], ("--model cas-register", "--workload causal-reverse"), "write (integers)"),
        (["write [4 [nil 1]] [4 [1 1]]", "read [4 [nil nil]] [4 [1 1]]"], (), "read (pairs), write (pairs)"),
        (["txn [[:r 1 nil]] [[:r 1 nil]]"], ("--workload list-append", "--workload rw-register"), "txn (transactions)"),
        ([], (), "nothing"),
    ],
)
def test_what_fits_several_kinds_or_none_is_not_guessed(
    operations: list[str], kinds: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    found, told = seen(tmp_path, operations)
    assert found == kinds
    assert told.startswith(words)


@pytest.mark.parametrize(
    ("test", "kinds"),
    [
        ("g-counter", ("--workload counter",)),
        ("set etcd 3.5", ("--workload set",)),
        ("etcd", ("--workload set", "--workload counter")),
        ("set counter", ("--workload set", "--workload counter")),
    ],
)
def test_of_several_kinds_the_name_of_the_test_says_which(test: str, kinds: tuple[str, ...], tmp_path: Path) -> None:
    seen(tmp_path, ["add 1 1", "read nil nil"])
    found = recognised(tmp_path / "h.edn").of_test(test)
    assert tuple(kind.words() for kind in found.kinds) == kinds


def test_reads_that_come_first_do_not_say_what_comes_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.jepsen.recognise.FIRST_BYTES", 300)
    assert seen(tmp_path, ["read nil nil"] * 10 + ["add 1 1", "read nil #{1}"])[0] == ("--workload set",)
    assert seen(tmp_path, ["write 1 1", *["read nil nil"] * 10, "read nil #{1}"])[0] == ("--workload causal-reverse",)
