"""The simulator lets the harness see a moment and act in it, outside of the node whose step it is."""

from __future__ import annotations

import pytest

from harness.errors import HarnessError


def test_points_are_seen_at_once_and_counted_by_host(simulate) -> None:
    async def body(environment, hosts) -> None:
        seen = []
        hosts["a"].reached("early")
        environment.moments.on_point(lambda node, point: seen.append((node, point)))
        hosts["a"].reached("tail-cut")
        assert seen == [("a", "tail-cut")]
        hosts["b"].reached("tail-cut")
        environment.client_host("client").reached("tail-cut")
        assert seen == [("a", "tail-cut"), ("b", "tail-cut")]
        assert environment.moments.counts() == {
            ("a", "early"): 1,
            ("a", "tail-cut"): 1,
            ("b", "tail-cut"): 1,
            ("client", "tail-cut"): 1,
        }
        assert environment.reached() == {"early": 1, "tail-cut": 3}

    simulate(body)


def test_counts_go_on_over_the_lives_of_a_node_and_the_dead_reach_nothing(simulate) -> None:
    async def body(environment, hosts) -> None:
        dead = hosts["a"]
        dead.reached("tail-cut")
        await environment.kill(["a"])
        dead.reached("tail-cut")
        await environment.boot(["a"])
        await environment.timeline.sleep(0)
        hosts["a"].reached("tail-cut")
        assert environment.moments.counts() == {("a", "tail-cut"): 2}

    simulate(body)


def test_the_watch_is_fed_events_of_nodes_and_what_is_done_to_them_once(simulate) -> None:
    async def body(environment, hosts) -> None:
        seen = []
        environment.moments.watch = lambda node, event, fields: seen.append((node, event, dict(fields)))
        hosts["a"].log("ready", number=1)
        environment.client_host("client").log("ready")
        for verb in (environment.pause, environment.resume, environment.kill, environment.boot, environment.power_off):
            await verb(["b"])
            await verb(["b"])
        assert [(node, event.removeprefix("environment:"), fields) for node, event, fields in seen] == [
            ("a", "ready", {"number": 1}),
            ("b", "paused", {}),
            ("b", "resumed", {}),
            ("b", "ended", {"how": "killed"}),
            ("b", "booted", {}),
            ("b", "ended", {"how": "power lost"}),
        ]

    simulate(body)


@pytest.mark.parametrize("error", [HarnessError("no such word"), KeyError("role")])
def test_an_error_of_the_harness_in_a_nodes_step_ends_the_simulation_and_not_the_node(simulate, error) -> None:
    async def body(environment, hosts) -> None:
        def fail(node: str, event: str, fields: object) -> None:
            raise error

        environment.moments.watch = fail
        hosts["a"].log("ready")
        await environment.timeline.sleep(1)

    with pytest.raises(HarnessError, match=r"no such word|KeyError: 'role'"):
        simulate(body)
