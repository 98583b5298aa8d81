"""The SyncStateSet, as a master and a controller keep it, driven by Hypothesis: requests, answers and acks are late or
lost, masters are deposed and do not know it, and each member of the set in effect has all that was ever confirmed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from system_under_test.rocketmq.broker.ha.confirm_offset import least_acked_offset
from system_under_test.rocketmq.broker.ha.sync_state_set import SetView, SlaveProgress, wanted_members
from system_under_test.rocketmq.controller.protocol import SyncStateSet
from tests.references.promised_log import BROKERS, Decisions, PromiseBroken, PromisedLog

BROKER = st.sampled_from(BROKERS)
SOME = st.sets(BROKER, max_size=2)
COUNT = st.integers(1, 3)
PLACE = st.integers(0, 1 << 8)
ARRIVES, IS_ANSWERED, IS_LOST = "it arrives", "it arrives and is answered", "it is lost"


class SetMachine(RuleBasedStateMachine):
    decisions: ClassVar[Decisions] = Decisions()

    def __init__(self) -> None:
        super().__init__()
        self.world = PromisedLog(self.decisions)

    @initialize(in_sync=st.integers(1, 3))
    def begin(self, in_sync: int) -> None:
        """Broker 1 is master, all follow, and so many are in the set."""
        self.world.elect(1)
        self.world.hear(1)
        for broker in BROKERS[1:in_sync]:
            self.follow(broker, 1)
            self.change_the_set(set())
        for broker in BROKERS[in_sync:]:
            self.follow(broker, 1)

    @rule(broker=BROKER)
    def elect(self, broker: int) -> None:
        """A master that nobody hears of is replaced; the new one hears of it, the old one does not."""
        world = self.world
        if world.group.master is not None:
            world.believed_dead.add(world.group.master)
        world.elect(broker)
        world.hear(world.group.master or broker)
        world.believed_dead.clear()

    @rule(broker=BROKER, count=COUNT)
    def follow(self, broker: int, count: int) -> None:
        """It hears who is master, connects where it has no connection, copies, and its acks arrive."""
        world = self.world
        world.hear(broker)
        if world.brokers[broker].connection is None:
            world.connect(broker)
        world.copy(broker, 5 * count)
        for _ in range(3):
            world.ack_arrives(broker)

    @rule(broker=BROKER, again=st.booleans())
    def disconnect(self, broker: int, again: bool) -> None:
        self.world.disconnect(broker)
        if again:
            self.world.connect(broker)

    @rule(broker=BROKER, count=COUNT, copies=st.booleans())
    def copy_and_ack_late(self, broker: int, count: int, copies: bool) -> None:
        """A slave copies, and its ack is under way; or such an ack arrives."""
        if copies:
            self.world.copy(broker, count)
        else:
            self.world.ack_arrives(broker)

    @rule(count=COUNT, copiers=st.sets(BROKER))
    def write(self, count: int, copiers: set[int]) -> None:
        """Whoever holds itself for master takes messages, and those slaves copy and ack them at once."""
        for broker in BROKERS:
            self.world.write(broker, count)
        for broker in sorted(copiers):
            self.world.copy(broker, 100)
            while any(connection.acks for connection in self.world.connections(broker)):
                self.world.ack_arrives(broker)

    @rule(broker=BROKER)
    def restart(self, broker: int) -> None:
        self.world.die(broker)
        self.world.boot(broker)

    @rule(lagging=SOME)
    def look(self, lagging: set[int]) -> None:
        """The requests are under way."""
        for broker in BROKERS:
            self.world.look(broker, lagging)

    def change_the_set(self, lagging: set[int]) -> None:
        """Look, ask and be answered, with nothing between."""
        self.look(lagging)
        while self.world.under_way:
            self.world.alter_arrives(0)
        while self.world.answers:
            self.world.answer_arrives(0)
        for broker in BROKERS:
            self.world.learn(broker)

    @precondition(lambda self: self.world.under_way)
    @rule(place=PLACE, fate=st.sampled_from((ARRIVES, ARRIVES, IS_ANSWERED, IS_LOST)))
    def an_alter(self, place: int, fate: str) -> None:
        place %= len(self.world.under_way)
        if fate == IS_LOST:
            self.world.under_way.pop(place)
            return
        self.world.alter_arrives(place)
        if fate == IS_ANSWERED:
            self.world.answer_arrives(len(self.world.answers) - 1)

    @precondition(lambda self: self.world.answers)
    @rule(place=PLACE)
    def answer_arrives(self, place: int) -> None:
        self.world.answer_arrives(place % len(self.world.answers))

    @rule(learns=st.booleans())
    def give_up(self, learns: bool) -> None:
        """No answer came in time."""
        for broker in BROKERS:
            self.world.give_up(broker)
            if learns:
                self.world.learn(broker)

    @invariant()
    def the_set_in_effect_has_what_was_confirmed(self) -> None:
        self.world.check()


def searched(examples: int, steps: int) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def test_each_member_of_the_set_in_effect_has_what_was_confirmed() -> None:
    run_state_machine_as_test(SetMachine, settings=searched(60, 30))


@pytest.mark.thorough
def test_each_member_of_the_set_in_effect_has_what_was_confirmed_in_many_more_runs() -> None:
    run_state_machine_as_test(SetMachine, settings=searched(10_000, 60))


# Planted mistakes


def shrinks_at_once(view: SetView, proposed: tuple[int, ...]) -> SetView:
    """Who is to leave is waited for no longer, before the controller has confirmed it."""
    staying = tuple(member for member in view.members if member in proposed)
    return SetView(confirmed=SyncStateSet.of(staying, view.confirmed.epoch), proposed=proposed)


def least_of_the_connected(members: Sequence[int], acked: Mapping[int, int]) -> int | None:
    """Who is not connected is not waited for."""
    return least_acked_offset([member for member in members if member in acked], acked)


def joins_without_holding_all(view: SetView, slaves: Mapping[int, SlaveProgress], **bounds: int) -> Any:
    return wanted_members(view, slaves, **{**bounds, "confirm_offset": 0, "epoch_start_offset": 0})


def believes_that_it_is_gone(view: SetView, answer: SyncStateSet) -> SetView:
    """A set that is unchanged is taken for the end of a proposal that may still be under way."""
    return view if answer.epoch < view.confirmed.epoch else SetView(confirmed=answer)


MISTAKES: dict[str, Decisions] = {
    "shrinks at once": Decisions(begin_alter=shrinks_at_once),
    "waits for members alone": Decisions(must_ack=lambda view: view.members),
    "waits for the connected alone": Decisions(least_acked=least_of_the_connected),
    "lets in who lacks something": Decisions(wanted_members=joins_without_holding_all),
    "believes that it is gone": Decisions(controller_says=believes_that_it_is_gone),
}


def test_a_planted_mistake_is_found() -> None:
    machine = type("Mistaken", (SetMachine,), {"decisions": MISTAKES["shrinks at once"]})
    until_found = settings(searched(8_000, 40), phases=[Phase.generate], report_multiple_bugs=False)
    with pytest.raises(PromiseBroken):
        run_state_machine_as_test(machine, settings=until_found)


def in_office(decisions: Decisions, in_sync: int) -> PromisedLog:
    """Broker 1 is master, and so many are in the set."""
    machine = type("Prepared", (SetMachine,), {"decisions": decisions})()
    machine.begin(in_sync=in_sync)
    assert len(machine.world.group.sync_state_set) == in_sync
    machine.world.check()
    return machine.world


def ask(world: PromisedLog, lagging: set[int]) -> None:
    """The master proposes a change, of which the controller does not hear yet."""
    world.look(1, lagging)
    assert world.under_way, "there is nothing to change"


def shrink_and_confirm(world: PromisedLog) -> None:
    ask(world, {2, 3})
    world.write(1, 1)


def expand_and_confirm(world: PromisedLog) -> None:
    ask(world, set())
    world.write(1, 1)
    world.alter_arrives(0)


def lose_a_connection_and_confirm(world: PromisedLog) -> None:
    world.disconnect(2)
    world.disconnect(3)
    world.write(1, 1)


def let_in_who_is_behind(world: PromisedLog) -> None:
    world.write(1, 1)
    world.look(1, set())
    if world.under_way:
        world.alter_arrives(0)


def give_up_and_confirm(world: PromisedLog) -> None:
    ask(world, set())
    world.give_up(1)
    world.learn(1)
    world.write(1, 1)
    world.alter_arrives(0)


SHORTEST: dict[str, tuple[int, Callable[[PromisedLog], None]]] = {
    "shrinks at once": (3, shrink_and_confirm),
    "waits for members alone": (1, expand_and_confirm),
    "waits for the connected alone": (3, lose_a_connection_and_confirm),
    "lets in who lacks something": (1, let_in_who_is_behind),
    "believes that it is gone": (1, give_up_and_confirm),
}
"""Of a mistake: how many are in the set, and what then shows it."""


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_shows_a_mistake_breaks_no_promise_without_it(mistake: str) -> None:
    in_sync, shows = SHORTEST[mistake]
    healthy = in_office(Decisions(), in_sync)
    shows(healthy)
    healthy.check()
    mistaken = in_office(MISTAKES[mistake], in_sync)
    shows(mistaken)
    with pytest.raises(PromiseBroken):
        mistaken.check()
