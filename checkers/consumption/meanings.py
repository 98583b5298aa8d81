"""The meanings of the anomalies of consumption, for readers who do not know them."""

from __future__ import annotations

from collections.abc import Mapping

from harness.record.meaning import Meaning

MEANINGS: Mapping[str, Meaning] = {
    "unconsumed": Meaning(
        says="A message whose send was acknowledged was never given to a consumer that subscribes to its topic.",
        usually="An offset was committed beyond it, its queue was nobody's, or the message itself was lost.",
    ),
    "lost-retry": Meaning(
        says="A message that a consumer failed to consume never came again, and is no dead letter either.",
        usually="It was taken back and not stored, or dropped instead of becoming a dead letter.",
    ),
    "passed-over": Meaning(
        says="The offset that a group had committed lay beyond a message that it had not consumed yet.",
        usually="The offset was committed when messages were pulled, not when they were consumed, or it was made up.",
    ),
    "overtaken": Meaning(
        says="In order, a message was given to a group before it was done with one that lies before it in its queue.",
        usually="A queue was begun at a wrong offset, or a message that failed did not keep those behind it waiting.",
    ),
    "overlap": Meaning(
        says="In order, two members of a group consumed messages of one queue at the same time.",
        usually="The lock of the queue was given to both, or taken from one that still was at work.",
    ),
    "wrong-retry-count": Meaning(
        says="A message came with a count of tries that does not follow from how often it had failed before.",
        usually="The count was not raised when the message was stored again, or was lost with a failover.",
    ),
    "early-dead-letter": Meaning(
        says="A message became a dead letter before it had failed as often as it may.",
        usually="The limit was compared with a count of something else.",
    ),
    "stuck-consumer": Meaning(
        says="After everything had been healed a consumer did not come to the end of its queues.",
        usually="A queue is given to somebody who is not there, or a lock is never given back.",
    ),
    "unexpected-consumption": Meaning(
        says="A message was consumed that nobody ever tried to send.",
        usually="Bytes of another message were taken for it.",
    ),
    "aborted-consumption": Meaning(
        says="A message was consumed although its send had certainly failed.",
        usually="The message was refused after it had been stored.",
    ),
}
