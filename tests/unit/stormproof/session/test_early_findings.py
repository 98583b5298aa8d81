"""When rows that have come are looked at, and what is told of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from harness.progress import Moment, Remark
from stormproof.session.check_spec import CheckSpec, of_model, of_workload
from stormproof.session.early_findings import PAUSE_S, EarlyFindings
from stormproof.session.engines import CheckOptions


def given_out(key: str, number: int) -> str:
    return (
        f"{{:process 0, :type :invoke, :f :generate, :value [:{key} nil]}}\n"
        f"{{:process 0, :type :ok, :f :generate, :value [:{key} {number}]}}\n"
    )


@dataclass
class Pipe:
    """A file that grows, and a clock that is set."""

    file: Path
    spec: CheckSpec = field(default_factory=lambda: of_workload("unique-ids", ()))
    now: float = 0.0
    lines: list[str] = field(default_factory=list)
    looks: int = 0
    takes_s: float = 0.0

    def __post_init__(self) -> None:
        self.file.touch()
        self.findings = EarlyFindings(
            path=Path("-"),
            spec_of=self._looked_at,
            check_options=CheckOptions(),
            progress=self._tell,
            clock=lambda: self.now,
        )

    def _looked_at(self, history: object) -> CheckSpec:
        self.looks += 1
        self.now += self.takes_s
        return self.spec

    def _tell(self, news: str | Moment | Remark) -> None:
        assert isinstance(news, Remark)
        self.lines.append(news.line)

    def come(self, text: str | bytes = b"") -> None:
        with self.file.open("ab") as file:
            file.write(text.encode() if isinstance(text, str) else text)
        self.findings(self.file, self.file.stat().st_size)

    def after(self, seconds: float, text: str | bytes = b"") -> list[str]:
        """What is told then, for the first time."""
        before = len(self.lines)
        self.now += seconds
        self.come(text)
        return self.lines[before:]


@pytest.fixture
def pipe(tmp_path: Path) -> Pipe:
    return Pipe(tmp_path / "kept")


def test_each_finding_is_told_once(pipe: Pipe) -> None:
    pipe.come(given_out("a", 7) + given_out("a", 7))
    assert pipe.lines == []
    (first,) = pipe.after(PAUSE_S)
    assert first.startswith("certain already: duplicated, key a, operations ")
    assert pipe.after(PAUSE_S, given_out("a", 8) + given_out("a", 7)) == []
    (second,) = pipe.after(PAUSE_S, given_out("b", 7) + given_out("b", 7))
    assert second.startswith("certain already: duplicated, key b, operations ")
    assert pipe.looks == 3


def test_nothing_is_looked_at_twice_nor_before_twice_the_time_of_the_last_look_has_passed(pipe: Pipe) -> None:
    pipe.come(given_out("a", 7))
    pipe.after(PAUSE_S)
    pipe.after(10 * PAUSE_S)
    assert pipe.looks == 1
    pipe.takes_s = 10.0
    pipe.come(given_out("a", 8))
    assert pipe.looks == 2
    pipe.after(19.9, given_out("a", 9))
    assert pipe.looks == 2
    pipe.after(0.2)
    assert pipe.looks == 3


def test_a_line_that_is_torn_says_nothing_yet(tmp_path: Path) -> None:
    """1 has been read, it seems: the rest of 12 is still to come."""
    pipe = Pipe(tmp_path / "kept", spec=of_model("register", initial=None, failed_cas=None))
    line = "INFO  jepsen.util - {}\t:{}\t:{}\t{}"
    written = [line.format(0, kind, "write", 12) for kind in ("invoke", "ok")]
    read = [line.format(0, "invoke", "read", "nil"), line.format(0, "ok", "read", 1)]
    pipe.come("\n".join([*written, *read]))
    assert pipe.after(PAUSE_S) == []
    assert pipe.looks == 1
    assert pipe.after(PAUSE_S, "2\n") == []
    assert len(pipe.after(PAUSE_S, "\n".join([read[0], read[1].replace("\t1", "\t13"), ""]))) == 1


def test_what_is_packed_is_looked_at_as_well(pipe: Pipe) -> None:
    import gzip

    packed = gzip.compress((given_out("a", 7) + given_out("a", 7)).encode() * 50)
    pipe.come(packed[:-9])
    assert len(pipe.after(PAUSE_S)) == 1


@pytest.mark.parametrize(
    "text",
    [
        b"PAR1" + b"\0" * 100,
        b"{:process 0, :type :ok, :f :generate, :value 7}\n",
        b"BZh9\0\0\0",
        b"w(1,2,3,4)\nr(1,2,3,5)\n",
        b"\xff\xfe\0\0\0",
        b"",
    ],
)
def test_what_cannot_be_judged_yet_is_left_for_the_end(pipe: Pipe, text: bytes) -> None:
    pipe.come(text)
    assert pipe.after(PAUSE_S) == []


def test_rows_in_another_order_are_left_for_the_end(pipe: Pipe) -> None:
    pipe.spec = pipe.spec.read_as({}, by_time=True)
    pipe.come(given_out("a", 7) + given_out("a", 7))
    assert pipe.after(PAUSE_S) == []
