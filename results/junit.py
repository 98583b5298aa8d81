"""`junit.xml`: one test case a scenario, in the dialect that CI systems read.

VALID is a pass. INVALID is a failure of type `invalid` with the anomalies in words. UNKNOWN is a failure of type
`unknown`, never a skip: a gate that skips an unknown verdict is a gate left open. A harness that failed is an error.
Where a verdict was expected, whatever comes out as expected is a pass, and anything else a failure: its properties say
what was expected and why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from checkers.api.verdict import CheckerResult, Verdict
from harness.printable import printable
from results.output import write


@dataclass(frozen=True, kw_only=True)
class Case:
    """One scenario and how it ended. `verdict` is None where the harness failed before one was reached."""

    name: str
    classname: str = "stormproof"
    seconds: float = 0.0
    verdict: Verdict | None
    words: str = ""
    """Why: reasons, anomalies in words, or what the harness failed with; its line breaks stay."""
    as_expected: bool | None = None
    """Whether it came out as it was expected to; None where nothing was expected."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """Shown with the case for any verdict: seed, report, replay line."""

    @property
    def passes(self) -> bool:
        return self.verdict is Verdict.VALID if self.as_expected is None else self.as_expected


def anomalies_in_words(reasons: Iterable[str], checkers: Mapping[str, CheckerResult]) -> str:
    """Each anomaly that counts with its first examples, then the verdict's other reasons, one a line: printable."""
    lines = []
    for checker, result in sorted(checkers.items()):
        for name, summary in result.found():
            if not summary.legal:
                lines.append(f"{checker}: {name} × {summary.count}")
                for example in summary.examples[:3]:
                    key = f" [{example.key}]" if example.key else ""
                    witnesses = ", ".join(str(index) for index in example.operations[:10])
                    lines.append(
                        f"  {name}{key}: {example.because}" + (f" (operations {witnesses})" if witnesses else "")
                    )
    return "\n".join(printable(line) for line in [*lines, *reasons])


def junit_xml(suite: str, cases: Sequence[Case]) -> str:
    """The document as text."""
    failures = sum(case.verdict is not None and not case.passes for case in cases)
    errors = sum(case.verdict is None for case in cases)
    totals = {
        "tests": str(len(cases)),
        "failures": str(failures),
        "errors": str(errors),
        "skipped": "0",
        "time": f"{sum(case.seconds for case in cases):.3f}",
    }
    root = ElementTree.Element("testsuites", {"name": printable(suite), **totals})
    element = ElementTree.SubElement(root, "testsuite", {"name": printable(suite), **totals})
    for case in cases:
        _add_case(element, case)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def write_junit(path: Path, suite: str, cases: Sequence[Case]) -> None:
    """Write the document. Raises OSError."""
    write(path, [junit_xml(suite, cases)])


def _add_case(suite: ElementTree.Element, case: Case) -> None:
    element = ElementTree.SubElement(
        suite,
        "testcase",
        {"classname": printable(case.classname), "name": printable(case.name), "time": f"{case.seconds:.3f}"},
    )
    if case.notes:
        properties = ElementTree.SubElement(element, "properties")
        for name, value in sorted(case.notes.items()):
            ElementTree.SubElement(properties, "property", {"name": printable(name), "value": printable(value)})
    if not case.passes:
        kind = "error" if case.verdict is None else "failure"
        problem = "harness-failed" if case.verdict is None else case.verdict.value
        first = case.words.partition("\n")[0] or problem
        failure = ElementTree.SubElement(element, kind, {"type": problem, "message": printable(first)})
        failure.text = "\n".join(map(printable, case.words.split("\n")))
