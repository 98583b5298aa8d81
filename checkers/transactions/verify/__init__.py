"""Verifies a certificate against a history: a second program, so simple that it can be believed.

    python -m checkers.transactions.verify CERTIFICATE HISTORY.parquet

It shares no code with the checker: it reads the Parquet file itself, pairs invocations with completions itself, and
takes nothing from the certificate but what it can find in the history. An order is replayed, transaction by
transaction, with plain registers and lists; a proof is followed step by step; an anomaly that a few reads show is
looked up in them; a cycle that rests on assumptions names them, and each of its steps is judged by itself. The format
of certificates is described in `checkers/transactions/evidence/certificate.py`, what each model demands in
docs/transactions.md.

For an order it establishes that every transaction that completed with ok is in it once, that no failed one is, and that
it explains every read as the model demands. For a proof, that each step follows by its rule, and that it ends in
contradictions only. For a cycle, that the history and the named assumptions show each of its steps, and that the model
forbids it.

Values written to a key must be unique; otherwise the certificate is refuted if that matters. Cost: near-linear. Commit
orders in which readers skip versions (causal and parallel snapshot isolation) cost transactions times chains of them,
such as sessions; writes follow reads costs the product of what is read and what was read before.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from checkers.transactions.verify.cycles import are_assumptions, require_cycle
from checkers.transactions.verify.demands import DEMANDS
from checkers.transactions.verify.history import Refuted, TransactionHistory, read_history
from checkers.transactions.verify.orders import require_order
from checkers.transactions.verify.steps import require_proof
from checkers.transactions.verify.witnesses import require_witness

__all__ = ["DEMANDS", "WORKLOADS", "Refuted", "TransactionHistory", "read_history", "verified", "verified_against"]

WORKLOADS = {"list-append": True, "rw-register": False}


def verified(certificate: Any, history: Path) -> None:
    """Raises Refuted unless the certificate (plain data, as of JSON) holds for this history.

    Raises OSError and ValueError if the history cannot be read.
    """
    workload = certificate.get("workload") if isinstance(certificate, dict) else None
    if not isinstance(workload, str) or workload not in WORKLOADS:
        raise Refuted(f"nothing is known of a workload {workload!r}")
    verified_against(certificate, read_history(history, lists=WORKLOADS[workload]))


def verified_against(certificate: Mapping[str, Any], history: TransactionHistory) -> None:
    """The same for a history that has been read."""
    name, verdict = certificate.get("model"), certificate.get("verdict")
    if not isinstance(name, str) or name not in DEMANDS:
        raise Refuted(f"nothing is known of a model {name!r}")
    if "assumed" in certificate and (verdict != "invalid" or "cycle" not in certificate):
        raise Refuted("only cycles rest on assumptions")
    if "assume" in certificate:
        _require_asked(certificate["assume"], certificate.get("assumed", []))
    if verdict == "valid":
        require_order(history, DEMANDS[name], certificate.get("order"))
    elif verdict != "invalid":
        raise Refuted(f"{verdict!r} is no verdict that is certified")
    elif "anomaly" in certificate:
        require_witness(history, DEMANDS[name], certificate["anomaly"])
    elif "cycle" in certificate:
        claimed = (certificate.get(part) for part in ("assumed", "cycle", "steps"))
        require_cycle(history, DEMANDS[name], *claimed)
    else:
        require_proof(history, DEMANDS[name], certificate.get("proof"))


def _require_asked(asked: Any, rested_on: Any) -> None:
    """Raises Refuted unless the assumptions that the cycle rests on were among those that the check was asked to
    make."""
    if not asked or not are_assumptions(asked):
        raise Refuted(f"{asked!r} are no assumptions")
    if are_assumptions(rested_on) and not set(rested_on) <= set(asked):
        raise Refuted(f"{rested_on!r} was not asked for")
