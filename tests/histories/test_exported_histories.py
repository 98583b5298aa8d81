"""What is exported for Jepsen's tools says the same: read again, it gets the same verdict and the same anomalies."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest

from stormproof.cli import main
from tests.references.history_language import parse_history

FOLDER = Path(__file__).parent
WRITTEN = {
    f"{file.parent.name}-{file.stem}": parse_history(file.read_text())
    for file in sorted(FOLDER.glob("*/*.history"))
    if file.parent.name != "availability"  # judged by demands that only a run makes
}


GROUPS: dict[tuple[str, ...], list[str]] = defaultdict(list)
for name, history in WRITTEN.items():
    GROUPS[history.judged_by()].append(name)


def checked(paths: list[Path], options: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    main.run(["check", *map(str, paths), *options, "--engine", "inprocess", "--json"])
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return {Path(answer["path"]).stem: (answer["verdict"], answer["anomalies"]) for answer in answers}


@pytest.mark.parametrize(
    "one_of",
    [pytest.param(3, marks=pytest.mark.gate, id="a third"), pytest.param(1, marks=pytest.mark.thorough, id="all")],
)
@pytest.mark.parametrize("options", GROUPS, ids=" ".join)
def test_an_exported_history_gets_the_same_verdict(
    options: tuple[str, ...], one_of: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    require_same_verdicts(options, tmp_path, capsys, one_of)


def test_values_without_a_key_among_those_with_one_are_read_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    require_same_verdicts(WRITTEN["consumption-unconsumed-by-one-member"].judged_by(), tmp_path, capsys)


def require_same_verdicts(
    options: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str], one_of: int = 1
) -> None:
    # Integers that were JSON are decided by other means, which may find out more about registers.
    names = [name for name in GROUPS[options] if "register" not in options[1] or WRITTEN[name].verdict != "unknown"]
    names = names[::one_of]
    stored = [WRITTEN[name].write(tmp_path / f"{name}.parquet") for name in names]
    expected = checked(stored, options, capsys)
    assert sorted(expected) == sorted(names)
    for form in ("edn", "json"):
        exported = [path.with_suffix(f".{form}") for path in stored]
        for path, file in zip(stored, exported, strict=True):
            assert main.run(["export", str(path), "--format", form, "--output", str(file)]) == 0
        assert checked(exported, options, capsys) == expected
