"""The meanings of the anomalies of a log."""

from __future__ import annotations

from collections.abc import Mapping

from checkers.prefix import Finals, by_their_names
from checkers.transactions.meanings import OF_CYCLES
from harness.record.meaning import Meaning

_OF_MESSAGES: Mapping[str, Meaning] = {
    "lost-write": Meaning(
        says="A message that was acknowledged or read is missing from the final log.",
        usually="It was acknowledged before it was durable or replicated, and a failover took it.",
    ),
    "unseen": Meaning(
        says="Messages that were acknowledged stand behind the end of every final read, and nobody ever read them.",
        usually="The end of the log was cut after it had been acknowledged.",
    ),
    "dirty-read": Meaning(
        says="A message was read that is not in the final log: it was shown before it was safe.",
        usually="Consumers are served beyond what is confirmed on every replica that may be elected.",
    ),
    "stuck-replica": Meaning(
        says="A replica that runs could not be read to its end, long after everything had been healed.",
        usually="It waits for ever for a master that is gone, or was left out of the group and never taken back.",
    ),
    "aborted-read": Meaning(
        says="A message was read whose send had certainly failed.",
        usually="The send was reported as refused after the message had been written.",
    ),
    "unexpected-read": Meaning(
        says="A message was read that nobody had tried to send.",
        usually="Corrupt or misdirected data, or messages of an earlier run left behind.",
    ),
    "duplicate": Meaning(
        says="One message stands at more than one offset.",
        usually="A send was carried out twice, often by a retry that the client does not know of.",
    ),
    "precommitted-read": Meaning(
        says="A transaction was given a message that it sent itself, before it was committed.",
        usually="Consumers are served what open transactions have written.",
    ),
    "inconsistent-offsets": Meaning(
        says="One queue shows two different messages at one offset.",
        usually="Two masters at once, or an offset that was given out again after the log had been cut.",
    ),
    "diverging-replicas": Meaning(
        says="Two replicas show different messages at one offset in the final reads.",
        usually="A replica rejoined without cutting off what its new master does not have.",
    ),
    "nonmonotonic-poll": Meaning(
        says="A consumer was given again, or earlier, what it had read already, without asking for it.",
        usually="Offsets changed under the consumer when the log was cut, or it was served by a replica that lags "
        "behind.",
    ),
    "nonmonotonic-send": Meaning(
        says="One producer's later message landed at or before its earlier one.",
        usually="The log was cut between the two sends, or two masters gave out offsets at once.",
    ),
    "poll-skip": Meaning(
        says="One consumer's successive polls passed over messages that are there.",
        usually="The index of the queue has a hole, or the consumer was sent past what a replica lacked.",
    ),
    "internal-skip": Meaning(
        says="A single poll passed over messages that are there.",
        usually="The index of the queue has a hole.",
    ),
    "internal-nonmonotonic": Meaning(
        says="A single poll is out of order in itself.",
        usually="The index of the queue was rebuilt or appended to in the wrong order.",
    ),
    "consumer-offset-skip": Meaning(
        says="A consumer resumed beyond messages that its group had never been given.",
        usually="The committed offset outlived a part of the log that was cut and written anew.",
    ),
}
MEANINGS: Mapping[str, Meaning] = {**_OF_MESSAGES, **OF_CYCLES}

FINAL_ON_A_PREFIX: Finals = by_their_names(
    *("aborted-read", "duplicate", "inconsistent-offsets", "diverging-replicas"),
    *("nonmonotonic-poll", "nonmonotonic-send", "poll-skip", "internal-skip", "internal-nonmonotonic"),
)
"""Anomalies that single operations show. Not among them are those that the final log decides, reads of messages that
were not sent, because they may be sent later, and cycles, which rest on known places of messages."""
