"""Transactional messages: seen if and only if they commit, whoever is master when, and whoever says it."""

from __future__ import annotations

import pytest

from system_under_test.remoting.client_error import ClientError
from system_under_test.remoting.codes import RequestCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.rocketmq.client.transaction_client import HalfSent, TransactionProducer
from system_under_test.rocketmq.transaction_protocol import Decision, EndTransaction
from tests.rocketmq.scenarios.broker_cluster import CONTROLLERS, TOPIC, Cluster, play

OK = "SUCCESS"
TIMES = {
    "transactionTimeOut": 2_000,
    "transactionCheckInterval": 3_000,
    "slaveSynchronizePeriod": 1_000,
    "flushDiskType": "SYNC_FLUSH",
}


def producer_of(cluster: Cluster, decisions: dict[str, Decision]) -> TransactionProducer:
    """What it has not been told it does not know yet."""
    producer = TransactionProducer(
        cluster._host,
        [f"{name}:9876" for name in CONTROLLERS],
        "payers",
        lambda body: decisions.get(body.decode(), Decision.UNKNOWN),
        heartbeat_s=0.5,
    )
    producer.start(TOPIC)
    return producer


async def half(producer: TransactionProducer, letter: str) -> HalfSent:
    return await producer.send_half(TOPIC, 0, letter.encode())


async def until_read(cluster: Cluster, node: str, letters: list[str], topic: str = TOPIC) -> None:
    async def are_there() -> bool:
        return await cluster.read(node, topic) == letters

    await cluster.until(are_there, 30)


def test_a_message_is_seen_once_it_is_committed_and_never_if_it_is_rolled_back():
    async def story(cluster: Cluster) -> None:
        producer = producer_of(cluster, {})
        first, second = await half(producer, "paid"), await half(producer, "refused")
        assert await cluster.read("b1") == []
        await producer.end(second, Decision.ROLLBACK)
        await producer.end(first, Decision.COMMIT)
        assert await cluster.read("b1") == ["paid"]
        await cluster.sleep(20)
        assert await cluster.read("b1") == ["paid"]
        producer.close()

    play(story, **TIMES)


def test_who_says_it_twice_or_differently_is_refused():
    async def story(cluster: Cluster) -> None:
        producer = producer_of(cluster, {})
        sent = await half(producer, "paid")
        await producer.end(sent, Decision.COMMIT)
        for decision in (Decision.ROLLBACK, Decision.COMMIT):
            with pytest.raises(ClientError, match="604"):
                await producer.end(sent, decision)
        assert await cluster.read("b1") == ["paid"]
        producer.close()

    play(story, **TIMES)


@pytest.mark.parametrize(
    "fields", [{"producerGroup": "thieves"}, {"commitLogOffset": "1"}, {"tranStateTableOffset": "7"}]
)
def test_who_means_another_message_is_refused(fields):
    async def story(cluster: Cluster) -> None:
        producer = producer_of(cluster, {})
        sent = await half(producer, "paid")
        end = EndTransaction(
            producer_group="payers",
            queue_offset=sent.queue_offset,
            log_offset=sent.log_offset,
            decision=Decision.COMMIT,
        )
        wrong = RemotingCommand.request(RequestCode.END_TRANSACTION, {**end.fields(), **fields})
        assert await cluster.ask("b1", wrong) == "SYSTEM_ERROR"
        assert await cluster.read("b1") == []
        assert await cluster.ask("b1", end.encode()) == OK
        assert await cluster.read("b1") == ["paid"]
        producer.close()

    play(story, **TIMES)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"commitOrRollback": "1"},
        {"commitLogOffset": "-1"},
        {"tranStateTableOffset": "9" * 30},
        {"commitOrRollback": "x"},
    ],
)
def test_nonsense_is_refused(fields):
    async def story(cluster: Cluster) -> None:
        whole = {"producerGroup": "g", "commitLogOffset": "0", "tranStateTableOffset": "0", "commitOrRollback": "8"}
        given = {**whole, **fields} if fields else {}
        assert (
            await cluster.ask("b1", RemotingCommand.request(RequestCode.END_TRANSACTION, given)) == "INVALID_PARAMETER"
        )

    play(story, brokers=1)


def test_a_producer_that_says_nothing_is_asked_until_it_knows():
    async def story(cluster: Cluster) -> None:
        decisions = {"paid": Decision.COMMIT, "refused": Decision.ROLLBACK}
        producer = producer_of(cluster, decisions)
        for letter in ("paid", "refused", "open"):
            await half(producer, letter)
        await cluster.sleep(1.5)
        assert await cluster.read("b1") == []
        await until_read(cluster, "b1", ["paid"])
        await cluster.sleep(8)
        assert await cluster.read("b1") == ["paid"]
        decisions["open"] = Decision.COMMIT
        await until_read(cluster, "b1", ["paid", "open"])
        producer.close()

    play(story, **TIMES)


def test_any_producer_of_the_group_may_answer():
    async def story(cluster: Cluster) -> None:
        first = producer_of(cluster, {})
        await half(first, "paid")
        first.close()
        second = producer_of(cluster, {"paid": Decision.COMMIT})
        await until_read(cluster, "b1", ["paid"])
        second.close()

    play(story, **TIMES)


def test_the_next_master_asks_about_what_is_open_and_knows_what_has_ended():
    async def story(cluster: Cluster) -> None:
        decisions = {"open": Decision.COMMIT, "gone": Decision.COMMIT, "paid": Decision.COMMIT}
        producer = producer_of(cluster, decisions)
        gone, paid, _ = [await half(producer, letter) for letter in ("gone", "paid", "open")]
        await producer.end(gone, Decision.ROLLBACK)
        await producer.end(paid, Decision.COMMIT)
        await cluster.kill("b1")
        await cluster.until_master("b2")
        await until_read(cluster, "b2", ["paid", "open"])
        await cluster.sleep(10)
        assert await cluster.read("b2") == ["paid", "open"], "what has ended is not asked about again"
        producer.close()

    play(story, **TIMES)


def test_who_began_at_one_master_ends_at_the_next():
    async def story(cluster: Cluster) -> None:
        producer = producer_of(cluster, {})
        sent = await half(producer, "paid")
        await cluster.kill("b1")
        await cluster.until_master("b2")
        moved = HalfSent(
            broker="b2:10911",
            queue_offset=sent.queue_offset,
            log_offset=sent.log_offset,
            message_id=sent.message_id,
        )
        await producer.end(moved, Decision.COMMIT)
        assert await cluster.read("b2") == ["paid"]
        producer.close()

    play(story, **TIMES)


def test_a_message_about_which_nobody_knows_is_put_aside_after_the_last_question():
    async def story(cluster: Cluster) -> None:
        producer = producer_of(cluster, {})
        await half(producer, "open")
        await cluster.sleep(7.5)
        assert "TRANS_CHECK_MAX_TIME_TOPIC" not in await cluster.topics("b1")
        await until_read(cluster, "b1", ["open"], "TRANS_CHECK_MAX_TIME_TOPIC")
        await cluster.sleep(10)
        assert await cluster.read("b1") == []
        assert await cluster.read("b1", "TRANS_CHECK_MAX_TIME_TOPIC") == ["open"]
        producer.close()

    play(story, transactionCheckMax=2, **TIMES)


def test_a_restart_goes_on_where_it_was():
    async def story(cluster: Cluster) -> None:
        producer = producer_of(cluster, {"later": Decision.COMMIT})
        for number in range(40):
            await producer.end(await half(producer, f"{number}"), Decision.COMMIT)
        await half(producer, "later")
        await cluster.sleep(1)
        await cluster.power_off("b1")
        await cluster.boot("b1")
        await cluster.until_master("b1")
        await until_read(cluster, "b1", [*(f"{number}" for number in range(40)), "later"])
        producer.close()

    play(story, brokers=1, **TIMES)


def test_a_broker_may_take_no_transactions():
    async def story(cluster: Cluster) -> None:
        producer = producer_of(cluster, {})
        with pytest.raises(ClientError) as refused:
            await half(producer, "paid")
        assert refused.value.definite
        producer.close()

    play(story, brokers=1, rejectTransactionMessage=True)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"clientID":1}', b'{"clientID":"c","producerDataSet":[{}]}'])
def test_a_heartbeat_that_is_none_is_refused(body):
    async def story(cluster: Cluster) -> None:
        assert await cluster.ask("b1", RemotingCommand.request(RequestCode.HEART_BEAT, {}, body)) == "INVALID_PARAMETER"

    play(story, brokers=1)
