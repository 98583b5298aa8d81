"""What storms are drawn from where the system is searched for those that it does not withstand: deployments first, then
settings that go with them."""

from __future__ import annotations

from collections.abc import Mapping

from harness.record.scenario import SettingValue
from workloads.systems.rocketmq.settings import RocketmqSettings

Settings = Mapping[str, SettingValue]
Values = Mapping[str, tuple[SettingValue, ...]]

_SHARES: tuple[tuple[int, Settings], ...] = (
    (10, {}),
    (1, {"controllers_alone": True}),
    (2, {"groups": 2, "brokers": 2}),
    (1, {"groups": 2}),
    (1, {"deployment": "single"}),
    (1, {"deployment": "masters"}),
    (2, {"deployment": "async-slaves", "brokers": 2}),
    (1, {"deployment": "async-slaves"}),
    (2, {"deployment": "dual-write", "brokers": 2}),
    (1, {"deployment": "dual-write"}),
    (2, {"groups": 2, "brokers": 2, "static_queues": 4, "move_share": 0.02}),
    (1, {"groups": 2, "static_queues": 4, "move_share": 0.05}),
    (8, {"client": "grpc"}),
    (1, {"client": "grpc", "groups": 2, "brokers": 2}),
    (1, {"client": "grpc", "deployment": "dual-write", "brokers": 2}),
    (4, {"deployment": "dledger"}),
    (1, {"deployment": "dledger", "ack_durable": True}),
)
"""Most are of controllers; those whose clients speak gRPC, and those of static topics, serve one workload alone."""

_ORDINARY: Settings = {}
_BORDERING: Settings = {"values": "bordering"}
DEPLOYMENTS: tuple[Settings, ...] = tuple(
    {**settings, **({} if "static_queues" in settings else values)}
    for share, settings in _SHARES
    for values in (*[_ORDINARY] * 4, _BORDERING)
    for _ in range(share)
)
"""Clients send what lies at borders in a fifth of those whose topic is not static."""

_OF_ALL: Values = {
    "delay_delivery": ("single", "async"),
    "flush": ("async",),
    "name_servers": (1,),
    "retention_s": (10.0, 30.0),
    "segment_bytes": (4_096, 65_536),
    "topic_queues": (8,),
    "request_places": (32,),
}
_OF_CONTROLLERS: Values = {
    "ack_durable": (True,),
    "all_ack": (False,),
    "brokers": (1, 2, 4, 5),
    "controllers": (1, 5),
    "in_sync_replicas": (2,),
    "learners": (1,),
    "machines": (2, 3),
    "min_in_sync_replicas": (1, 3),
    "notify_role_changed": (False,),
    "snapshot_threshold": (20,),
    "unclean_election": (True,),
}
_OF_SLAVES: Values = {"ack_durable": (True,), "brokers": (2, 4), "groups": (2,)}
_OF_MASTERS: Values = {"groups": (3,)}
_OF_DLEDGER: Values = {"ack_durable": (True,), "batch_push": (True,), "brokers": (5,), "preferred": (2,)}
_NOT_OF_DLEDGER = ("flush", "retention_s")
_OF_PROXIES: Values = {"proxies": (1, 3)}

_TOGETHER: tuple[Settings, ...] = ({"clean_when_full": True, "segment_bytes": 4_096},)
_TOGETHER_WITH_CONTROLLERS: tuple[Settings, ...] = (
    {"brokers": 1, "min_in_sync_replicas": 1},
    {"brokers": 1, "min_in_sync_replicas": 1, "flush": "async"},
    {"brokers": 2, "min_in_sync_replicas": 1},
    {"brokers": 5, "min_in_sync_replicas": 3},
    {"brokers": 4, "learners": 1},
    {"all_ack": False, "in_sync_replicas": 2},
    {"all_ack": False, "read_uncommitted": True},
    {"all_ack": False, "min_in_sync_replicas": 1, "unclean_election": True},
    {"retention_s": 10.0, "sync_from_last_file": True},
    {"retention_s": 100.0, "sync_from_last_file": True},
)

SELDOM: tuple[Settings, ...] = ({"batch_push": True}, {"becomes_learner": True}, {"begins_as_version": 4})

PACES: Values = {
    "sparse_heartbeats": (True,),
    "time_scale": (0.1, 0.1, 0.15, 0.2, 0.3),
}
OWN_PACE: Settings = {"time_scale": 1.0}


def explored(settings: RocketmqSettings) -> Values:
    """What a storm of this deployment draws, beside the defaults."""
    of_all = {name: values for name, values in _OF_ALL.items() if name not in _NOT_OF_DLEDGER}
    return {
        **(of_all if settings.has_dledger else _OF_ALL),
        **(_OF_DLEDGER if settings.has_dledger else {}),
        **(_OF_CONTROLLERS if settings.has_controllers else {}),
        **(_OF_SLAVES if settings.has_slaves else {}),
        **(_OF_MASTERS if settings.deployment == "masters" else {}),
        **(_OF_PROXIES if settings.client == "grpc" else {}),
    }


def explored_together(settings: RocketmqSettings) -> tuple[Settings, ...]:
    if settings.has_dledger:
        return ()
    return (*_TOGETHER, *(_TOGETHER_WITH_CONTROLLERS if settings.has_controllers else ()))
