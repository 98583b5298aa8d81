"""Controllers come and go while brokers and clients are served: nothing that was acknowledged is lost on the way."""

from __future__ import annotations

import asyncio

import pytest

from system_under_test.remoting.client_error import ClientError
from system_under_test.remoting.codes import ResponseCode
from system_under_test.replicated.key_value_client import KeyValueClient
from system_under_test.rocketmq.client.controller_client import ControllerClient, ControllerRefusal
from system_under_test.rocketmq.controller.protocol import ControllerMetadata
from tests.rocketmq.scenarios import broker_cluster
from tests.rocketmq.scenarios.controller_cluster import CONTROLLERS, ControllerCluster, controller, play
from tests.rocketmq.scenarios.test_controller_scenarios import becomes, state

SUCCESSORS = ("c4", "c5", "c6")
ADDRESSES = tuple(f"{name}:9878" for name in (*CONTROLLERS, *SUCCESSORS))
KEY = "letters"


class Administrator:
    """Asks until a controller leads."""

    def __init__(self, cluster: ControllerCluster, *, timeout_s: float = 10.0) -> None:
        self._cluster = cluster
        self.client = ControllerClient(cluster.env.client_host("administrator"), ADDRESSES[:3], timeout_s)

    async def metadata(self) -> ControllerMetadata:
        for _ in range(200):
            self.client.active = None
            try:
                return await self.client.metadata(await self.client.find_active())
            except ClientError:
                await self._cluster.pass_s(0.1)
        raise AssertionError("no controller leads")

    async def members(self) -> str:
        """Those that vote, then those that do not yet."""
        metadata = await self.metadata()
        ids = [peer.partition("-")[0] for peer in metadata.peers.split(";")]
        voters = " ".join(node for node in ids if node not in metadata.learners)
        return f"{voters} | {' '.join(metadata.learners)}".rstrip(" |")

    async def outcome(self, change: str, *arguments: str) -> str:
        """The name of the response code, with the remark where something was refused."""
        self.client.active = None  # as a command of its own, which remembers nothing
        for _ in range(200):
            try:
                await getattr(self.client, change)(*arguments)
                return "SUCCESS"
            except ControllerRefusal as refusal:
                if refusal.code != "not-leader":
                    return f"{ResponseCode(refusal.response_code).name}: {refusal.detail.partition(': ')[2]}"
            except ClientError as error:
                if not error.definite:
                    raise
            await self._cluster.pass_s(0.1)
        raise AssertionError("no controller leads")

    async def replace(self, old: str, new: str) -> None:
        await self._cluster.start_controller(new)
        assert await self.outcome("add_controller", new, f"{new}:9879") == "SUCCESS"
        assert await self.outcome("remove_controller", old) == "SUCCESS"
        await self._cluster.pass_s(1.5)  # brokers hear of it with their next heartbeat
        await self._cluster.env.kill([old])


class Load:
    """Clients that append to one list, each element once."""

    def __init__(self, cluster: ControllerCluster) -> None:
        self._timeline = cluster.env.timeline
        self._clients = [KeyValueClient(cluster.env.client_host(f"client-{n}"), ADDRESSES, 2.0) for n in range(3)]
        self.acknowledged: list[int] = []
        self._tasks = [asyncio.create_task(self._append(number)) for number in range(len(self._clients))]

    async def _append(self, number: int) -> None:
        element = number
        while True:
            element += len(self._clients)
            try:
                await self._clients[number].transaction([["append", KEY, element]])
                self.acknowledged.append(element)
            except ClientError:
                continue  # in doubt: never tried again
            finally:
                await self._timeline.sleep(0.02)

    async def end(self) -> list[int]:
        """What the controllers hold."""
        for task in self._tasks:
            task.cancel()
        for _ in range(100):
            try:
                return list(await self._clients[0].get(KEY))
            except ClientError:
                await self._timeline.sleep(0.1)
        raise AssertionError("no controller answers")


@pytest.mark.parametrize("threshold", [1_000, 20])
def test_all_three_controllers_are_replaced_one_after_another_under_load_and_nothing_is_lost(threshold):
    """With the small threshold those that join get a snapshot, and find the others' members in it."""

    async def story(cluster: ControllerCluster) -> None:
        b1, b2, _ = await cluster.three()
        before = await b1.info()
        load, administrator = Load(cluster), Administrator(cluster)
        for old, new in zip(CONTROLLERS, SUCCESSORS, strict=True):
            await administrator.replace(old, new)
        assert await administrator.members() == "c4 c5 c6"
        await cluster.pass_s(2)
        held = await load.end()
        assert len(load.acknowledged) > 200
        assert sorted({*held}) == sorted(held), "an element was appended twice"
        assert {*load.acknowledged} <= {*held}, "what was acknowledged is lost"
        assert await b1.info() == before

        await cluster.env.power_off(SUCCESSORS)
        await cluster.env.boot(SUCCESSORS)
        assert await b1.info() == before, "they know each other from their disks, and nobody else is left to tell them"
        await cluster.pass_s(2)
        b1.die()
        await cluster.until(becomes(b2, 2), 12)
        assert state(await b2.info()) == (2, 2, (2,)), "brokers had found the new ones by themselves, and beat to them"

    play(story, raftSnapshotThreshold=threshold)


def test_a_controller_catches_up_before_it_votes_and_asking_again_is_waiting_for_the_same():
    async def story(cluster: ControllerCluster) -> None:
        administrator = Administrator(cluster)
        await cluster.start_controller("c4")
        await administrator.metadata()
        mistyped = ("add_controller", "c4", "c4:9999")
        for _ in range(2):
            waited = await administrator.outcome(*mistyped)
            assert waited.startswith("CONTROLLER_APPLY_TIMEOUT: c4 has not caught up yet: it votes as soon as it has")
        assert await administrator.members() == "c1 c2 c3 | c4"
        assert await administrator.outcome("transfer_leadership", "c4") == (
            "CONTROLLER_UNFIT_CHANGE: c4 is no controller that votes"
        )
        add = ("add_controller", "c4", "c4:9879")
        assert await administrator.outcome(*add) == "CONTROLLER_UNFIT_CHANGE: c4 is a member already, at c4:9999"
        assert await administrator.outcome("remove_controller", "c4") == "SUCCESS"
        assert await administrator.outcome(*add) == "SUCCESS"
        assert await administrator.members() == "c1 c2 c3 c4"
        assert await administrator.outcome(*add) == "SUCCESS", "it is there already"

    play(story)


def test_a_learner_is_promoted_by_whoever_leads_when_it_has_caught_up():
    async def story(cluster: ControllerCluster) -> None:
        administrator, other = Administrator(cluster), Administrator(cluster)
        await cluster.start_controller("c4")
        leader = (await administrator.metadata()).leader_id
        adding = asyncio.create_task(other.outcome("add_controller", "c4", "c4:9879"))
        while (members := await administrator.members()) != "c1 c2 c3 | c4":
            assert members == "c1 c2 c3", "it never was a learner only"
            await cluster.pass_s(0.005)
        await cluster.env.kill([leader])
        with pytest.raises(ClientError):
            await adding

        async def votes() -> bool:
            return await administrator.members() == "c1 c2 c3 c4"

        await cluster.until(votes, 10)

    play(story)


def test_only_a_controller_that_is_there_and_belongs_to_nobody_is_added():
    async def story(cluster: ControllerCluster) -> None:
        administrator = Administrator(cluster)

        async def refusal(*arguments: str) -> str:
            code, _, remark = (await administrator.outcome("add_controller", *arguments)).partition(": ")
            assert code == "CONTROLLER_UNFIT_CHANGE"
            return remark

        assert await refusal("c5", "c1:9879") == "c1:9879 is the address of c1"
        assert (await refusal("c4", "c4:9879")).startswith("no controller answers at c4:9878")
        alone = {"controllerJoinsGroup": False, "controllerDLegerPeers": "c5-c5:9879"}
        await cluster.start_controller("c5", **alone)
        await cluster.start_controller("c6", controllerDLegerGroup="another")
        await cluster.pass_s(5)
        assert await refusal("c5", "c5:9879") == "the controller at c5:9878 follows c5, at c5:9878"
        assert await refusal("c6", "c6:9879") == "the controller at c6:9878 is one of group 'another', not 'group1'"
        assert await administrator.members() == "c1 c2 c3"

    play(story)


def test_a_change_that_would_leave_no_majority_that_answers_is_refused():
    async def story(cluster: ControllerCluster) -> None:
        administrator = Administrator(cluster)
        leader = (await administrator.metadata()).leader_id
        living, dead = [name for name in CONTROLLERS if name != leader]
        await cluster.env.kill([dead])
        await cluster.pass_s(3)
        refused = await administrator.outcome("remove_controller", living)
        assert refused.startswith("CONTROLLER_UNFIT_CHANGE: too few"), refused
        assert await administrator.outcome("remove_controller", dead) == "SUCCESS"
        assert await administrator.members() == " ".join(sorted((leader, living)))
        assert (await administrator.outcome("remove_controller", dead)).endswith(f"{dead} is no member")

    play(story)


def test_the_leader_hands_over_at_once_and_not_to_one_that_is_down():
    async def story(cluster: ControllerCluster) -> None:
        b1, _, _ = await cluster.three()
        administrator = Administrator(cluster)
        leader = (await administrator.metadata()).leader_id
        heir, dead = [name for name in CONTROLLERS if name != leader]
        assert await administrator.outcome("transfer_leadership", leader) == "SUCCESS", "it leads already"
        assert await administrator.outcome("transfer_leadership", heir) == "SUCCESS"
        begun = cluster.env.timeline.now_ns()
        assert state(await b1.info()) == (1, 1, (1, 2, 3))
        assert cluster.env.timeline.now_ns() - begun < 0.5e9, "no election timeout had to pass"
        assert (await administrator.metadata()).leader_id == heir
        await cluster.env.kill([dead])
        assert await administrator.outcome("transfer_leadership", dead) == (
            f"CONTROLLER_NOT_TAKEN_OVER: {dead} did not take over in time"
        )
        assert (await administrator.metadata()).leader_id == heir

    play(story)


def test_brokers_fail_over_when_none_of_the_controllers_they_were_started_with_is_left(tmp_path):
    async def story(cluster: broker_cluster.Cluster) -> None:
        assert await cluster.send("b1", "a") == ["SUCCESS"]
        env = cluster._environment
        administrator = ControllerClient(env.client_host("administrator"), ADDRESSES[:3], 10.0)

        async def done(change, *arguments: str) -> bool:
            await change(*arguments)
            return True

        for old, new in zip(CONTROLLERS, SUCCESSORS, strict=True):
            await env.start([controller(new)], tmp_path)
            await cluster.until(lambda new=new: done(administrator.add_controller, new, f"{new}:9879"), 20)
            await cluster.until(lambda old=old: done(administrator.remove_controller, old), 20)
            await cluster.sleep(1.5)  # brokers hear of it with their next heartbeat
            await cluster.until_master("b1")
            await cluster.kill(old)
            assert await cluster.send("b1", old) == ["SUCCESS"]
        await cluster.sleep(12)
        await cluster.kill("b1")
        await cluster.until_master("b2")
        assert await cluster.send("b2", "z") == ["SUCCESS"]
        assert await cluster.read("b2") == ["a", *CONTROLLERS, "z"]

    broker_cluster.play(story)
