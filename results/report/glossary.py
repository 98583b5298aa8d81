"""What each anomaly means, in one sentence for people who have not met it before."""

from __future__ import annotations

MEANINGS = {
    "lost-write": "A message that was acknowledged or read is missing from the final log.",
    "unexpected-read": "A message was read that nobody had tried to send.",
    "unseen": "Acknowledged messages that nobody had read when the final reads had caught up.",
    "inconsistent-offsets": "One queue shows two different messages at one offset.",
    "duplicate": "One message stands at more than one offset.",
    "aborted-read": "A message was read whose send had certainly failed.",
    "dirty-read": "A message was read that is not in the final log: it was shown before it was safe.",
    "poll-skip": "One consumer's successive polls passed over messages that are there.",
    "consumer-offset-skip": "A consumer resumed beyond messages that its group had never been given.",
    "nonmonotonic-poll": "A consumer was given again, or earlier, what it had read already.",
    "nonmonotonic-send": "One producer's later message landed before its earlier one.",
    "internal-skip": "A single batch passed over messages that are there.",
    "internal-nonmonotonic": "A single batch is out of order in itself.",
    "diverging-replicas": "Two replicas hold different data where both had confirmed it.",
    "no-progress": "Nothing succeeded although all but nodes that the system can do without had healed.",
    "delivered-early": "A message was delivered before it was due.",
    "delivered-late": "A message was delivered later after its due time than is allowed.",
    "two-masters": "Two nodes were master under one epoch.",
    "two-leaders": "Two of those who elect led in one term.",
    "epoch-back": "A node acted under an epoch lower than one it had acted under before.",
    "unclean-election": "A master was elected that was not in sync, though that is not allowed.",
    "fenced-write": "A deposed master went on to confirm writes that its successor's log does not hold.",
    "confirmed-lost": "A new master's log lacked bytes that had been confirmed.",
    "diverging-logs": "Two replicas end with different bytes below their confirm offsets.",
    "rewritten-log": "Confirmed bytes were replaced by other confirmed bytes.",
    "slow-recovery": "Clients were refused for longer than is allowed before they were served again for good.",
    "nonlinearizable": "No order of the operations that fits real time explains what clients saw.",
    "stale-read": "A read returned a value that had been overwritten before the read began.",
    "G0": "Writes are interleaved: a circle of transactions, each of which wrote over the one before.",
    "G1a": "Something was read that a failed transaction had written.",
    "G1b": "A state was read that its transaction went on to change.",
    "G1c": "Information flowed in a circle: each transaction saw, or wrote over, what the one before had written.",
    "G-single-item": "A circle of transactions, one of which did not see what the next one wrote.",
    "G-nonadjacent-item": "A circle of transactions, several of which did not see what the next one wrote, but no two "
    "such in a row.",
    "G2-item": "A circle of transactions, two of which in a row did not see what the next one wrote.",
    "internal": "A transaction's read contradicts its own earlier reads and writes.",
    "future-read": "A transaction read what it wrote only later.",
    "dirty-update": "A transaction wrote behind what a failed one had written.",
    "lost-update": "Several transactions read the same version and wrote over it, none seeing another's write.",
    "incompatible-order": "Two reads of a list contradict each other about the order of its elements.",
    "duplicate-elements": "A read shows an element twice that was appended once.",
    "garbage-read": "Something was read that nobody had tried to write.",
    "cyclic-versions": "By what was assumed, versions of a register precede each other in a circle.",
}

CLOSED_BY = {
    "-process": "The circle closes through the order of what one process did.",
    "-realtime": "The circle closes through real time: something had ended before something else began.",
}
"""What the names of cycles that need more than reads and writes end in."""
NO_ORDER = "not-"


def meaning(anomaly: str) -> str:
    """Empty for an anomaly that no checker here reports."""
    if anomaly.startswith(NO_ORDER):
        return f"No order of the transactions explains what they read as {anomaly.removeprefix(NO_ORDER)} demands."
    for ending, closed in CLOSED_BY.items():
        if anomaly.endswith(ending) and anomaly.removesuffix(ending) in MEANINGS:
            return f"{MEANINGS[anomaly.removesuffix(ending)]} {closed}"
    return MEANINGS.get(anomaly, "")
