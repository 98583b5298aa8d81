"""`report.html`: one self-contained page a run, written from the run directory alone."""

from __future__ import annotations

from results.report.report import write_report

__all__ = ["write_report"]
