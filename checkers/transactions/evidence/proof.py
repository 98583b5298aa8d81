"""What a complete decider answers: an order that explains the history, or a proof that there is none.

A proof is a list of steps `source before target`, each following from the history alone or from earlier steps, and
ends in a cycle of them. Events are transactions; at snapshot isolation and its kin each transaction has two events,
its begin `2 * t` and its commit `2 * t + 1`.

Rules, with w the writer that r reads key k from (perhaps INITIAL), u another committed writer of k, `→` a path of
steps already taken, b and c the begin and the commit of a transaction:

| because | serializable | snapshot isolation | parallel snapshot isolation, causal and weaker |
|---|---|---|---|
| INITIAL | 0 before t | c0 before b of t | 0 before t |
| INSIDE | | b before c of t | |
| READ | w before r | c of w before b of r | w before r |
| SESSION | t before the later t' of its session | c of t before b of t' | t before t' |
| REALTIME | t before t' if t ended before t' began | c of t before b of t' | |
| KNOWN | u before v, in this order in a list that was read | c of u before b of v | u before v |
| OVERWRITTEN | u → r, so u before w | c of u → b of r, so c of u before b of w | u sees-before r, so u before w |
| OVERWRITES | w → u, so r before u | b of w → c of u, so b of r before c of u | |
| EXCLUSIVE | | u, v write k and b of u → c of v, so c of u before b of v | |
| CASE | one of two orders of two writers of k, assumed | likewise, c of one before b of the other | as serializable |

At snapshot isolation OVERWRITES needs that u follows w, which is a step of its own by EXCLUSIVE. REALTIME is used only
by strict and strong models. The weaker models differ in what "sees-before" means; `path` holds its steps. A path says
which transaction sees which, so SESSION can be a step of a path without being one of the order:

| level | u sees-before r by a path of | steps of the order beside OVERWRITTEN |
|---|---|---|
| PL-2 | (nothing is OVERWRITTEN) | READ, KNOWN |
| strong session PL-2 | (nothing is OVERWRITTEN) | READ, KNOWN, SESSION |
| read committed | one READ, earlier in r's program order than the read of k from w | READ, KNOWN |
| strong session read committed | as read committed | READ, KNOWN, SESSION |
| read atomic | one READ, wherever in r | READ, KNOWN |
| strong session read atomic | one READ, or one SESSION | READ, KNOWN, SESSION |
| read your writes | SESSION | READ, KNOWN |
| monotonic reads | READ, SESSION | READ, KNOWN |
| monotonic writes | SESSION, READ | READ, KNOWN, SESSION |
| writes follow reads | READ, READ or READ, SESSION, READ: read in or before the writing transaction | READ, KNOWN |
| pram | SESSION or READ, SESSION or SESSION, READ or SESSION, READ, SESSION | READ, KNOWN, SESSION |
| causal | READ and SESSION, as many as one likes | READ, KNOWN, SESSION |
| parallel snapshot isolation | READ, SESSION, KNOWN, OVERWRITTEN and CASE, likewise | the same |

Pram is more than each of read your writes, monotonic reads and monotonic writes alone: a session that reads a later
write of another session, and then, in its next transaction, not the earlier one, violates only all three together.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from checkers.api.verdict import Verdict
from checkers.kernels.columns import Int32


class Because(Enum):
    INITIAL = "initial"
    INSIDE = "inside"
    READ = "read"
    SESSION = "session"
    REALTIME = "realtime"
    VERSION_ORDER = "known"
    OVERWRITTEN = "overwritten"
    OVERWRITES = "overwrites"
    EXCLUSIVE = "exclusive"
    CASE = "case"


@dataclass(frozen=True, kw_only=True)
class ProofStep:
    source: int
    """An event: it comes before `target`."""
    target: int
    because: Because
    key: int = -1
    """The key of READ, KNOWN, OVERWRITTEN, OVERWRITES, EXCLUSIVE and CASE."""
    reader: int = -1
    """Transaction r of OVERWRITTEN and OVERWRITES."""
    writer: int = -1
    """Transaction w of OVERWRITTEN and OVERWRITES."""
    path: tuple[int, ...] = ()
    """The numbers of earlier steps, each beginning where the one before it ends. It is empty if the path's source and
    target are the same event."""


@dataclass(frozen=True, kw_only=True)
class Proof:
    """Steps are numbered on from those of the enclosing proof; the first step of a case is its CASE."""

    steps: tuple[ProofStep, ...]
    cycle: tuple[int, ...] = ()
    """The numbers of steps, each beginning where the one before it ends, and the first where the last one ends."""
    cases: tuple[Proof, Proof] | None = None
    """The two cases, in place of a cycle: both orders of the same two writers of a key lead to a contradiction."""


class Bound(Enum):
    """The bound at which a decision was given up."""

    TIME = "the time given had passed"
    STEPS = "the search for an order had taken as many steps as it may"


@dataclass(frozen=True, kw_only=True)
class Established:
    """What was known when a decision was given up."""

    bound: Bound
    components: int = 0
    """How many groups of transactions are wrong in the last order."""
    transactions: int = 0
    """How many transactions are in these groups."""
    choices: int = 0
    """How many pairs of writers had one put before the other."""
    conflicts: int = 0
    """How many combinations of such orders were found to be impossible."""
    prefix: int = 0
    """How many of the transactions invoked first have an order that explains them by themselves."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """VALID with an order, INVALID with a proof, UNKNOWN with what stayed open."""

    verdict: Verdict
    order: Int32 | None = None
    """All events, including INITIAL's, in an order that explains every read. At models without snapshots and at
    parallel snapshot isolation transactions may see different orders; there this shows the order of each key's
    versions, and is consistent with READ, KNOWN and, if the model keeps it, SESSION."""
    proof: Proof | None = None
    open: tuple[tuple[int, ...], ...] = ()
    """The components that a bound left undecided, as lists of at most EXAMPLES of their transactions."""
    established: Established | None = None
    """What was known when an UNKNOWN decision was given up."""
