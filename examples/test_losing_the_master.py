"""A first test: acknowledged messages survive the loss of the master. Run it with pytest."""

from stormproof import PRIMARY, Isolate, every, log, rocketmq, run, storm


def test_acked_messages_survive_losing_the_master(tmp_path):
    outcome = run(
        storm(
            system=rocketmq(brokers=3, controllers=3, all_ack=True),
            workload=log(queues=4),
            nemesis=[every(10, Isolate(PRIMARY), heal_after_s=5)],
            environment="simulated",
            time_limit_s=60,
            seed=1729,
        ),
        runs=tmp_path,
    )
    outcome.assert_valid()
