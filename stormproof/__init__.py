"""What a user of Stormproof imports: storms from a test of one's own, and what adapters, workloads and checkers need.

    from stormproof import PRIMARY, Isolate, every, log, rocketmq, run, storm

    def test_acked_messages_survive_losing_the_master():
        outcome = run(storm(
            system=rocketmq(brokers=3, controllers=3, all_ack=True),
            workload=log(queues=4),
            nemesis=[every(10, Isolate(PRIMARY), heal_after_s=5)],
            time_limit_s=60,
            seed=1729,
        ))
        outcome.assert_valid()

Each name is imported from its module when it is first used. An ImportError says so where another package on Python's
path hides one of those that Stormproof is made of (`results`, `harness`, …).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from stormproof.packages import require_own_packages

if TYPE_CHECKING:
    from checkers.api.anomaly import Anomaly as Anomaly
    from checkers.api.evidence import Evidence as Evidence
    from checkers.api.evidence import any_ok as any_ok
    from checkers.api.findings import FINDINGS as FINDINGS
    from checkers.api.findings import Example as Example
    from checkers.api.findings import Findings as Findings
    from checkers.api.findings import gathered_findings as gathered_findings
    from checkers.api.findings import judge as judge
    from checkers.api.per_key import PairedOperation as PairedOperation
    from checkers.api.per_key import finding as finding
    from checkers.api.per_key import per_key as per_key
    from checkers.api.plan import Checker as Checker
    from checkers.api.plan import CheckRequest as CheckRequest
    from checkers.api.plan import Dataset as Dataset
    from checkers.api.plan import Engine as Engine
    from checkers.api.verdict import AnomalySummary as AnomalySummary
    from checkers.api.verdict import CheckerResult as CheckerResult
    from checkers.api.verdict import Verdict as Verdict
    from checkers.completions import CompletionEchoes as CompletionEchoes
    from checkers.completions import members as members
    from checkers.linearizable.model import ANYTHING as ANYTHING
    from checkers.linearizable.model import Call as Call
    from checkers.linearizable.model import Model as Model
    from checkers.linearizable.model import always as always
    from checkers.linearizable.model import reading as reading
    from harness.abilities import Elastic as Elastic
    from harness.bounds import Bounds as Bounds
    from harness.client import Client as Client
    from harness.errors import CLIENT_CRASHED as CLIENT_CRASHED
    from harness.errors import CLIENT_TIMEOUT as CLIENT_TIMEOUT
    from harness.errors import CONNECT_FAILED as CONNECT_FAILED
    from harness.errors import CONNECTION_LOST as CONNECTION_LOST
    from harness.errors import NOT_FOUND as NOT_FOUND
    from harness.errors import OUTCOME_UNKNOWN as OUTCOME_UNKNOWN
    from harness.errors import PRECONDITION_FAILED as PRECONDITION_FAILED
    from harness.errors import SERVICE_NOT_AVAILABLE as SERVICE_NOT_AVAILABLE
    from harness.errors import ErrorCode as ErrorCode
    from harness.errors import HarnessError as HarnessError
    from harness.errors import OperationError as OperationError
    from harness.errors import UsageError as UsageError
    from harness.generator import Generator as Generator
    from harness.generator import drawn as drawn
    from harness.generator import indexed as indexed
    from harness.generator import invoke as invoke
    from harness.invariants import Breaches as Breaches
    from harness.invariants import Invariants as Invariants
    from harness.membership import Start as Start
    from harness.operation import Operation as Operation
    from harness.program import Command as Command
    from harness.program import DebianPackages as DebianPackages
    from harness.program import Dockerfile as Dockerfile
    from harness.program import JavaRelease as JavaRelease
    from harness.program import Listening as Listening
    from harness.program import MavenArtifacts as MavenArtifacts
    from harness.program import NamedImage as NamedImage
    from harness.program import PythonProgram as PythonProgram
    from harness.program import Succeeding as Succeeding
    from harness.record.excuse import Excuse as Excuse
    from harness.record.fault_log import FaultWindow as FaultWindow
    from harness.record.meaning import Meaning as Meaning
    from harness.record.node_reports import NodeReports as NodeReports
    from harness.record.scenario import Scenario as Scenario
    from harness.seed import Seed as Seed
    from harness.system import Declaration as Declaration
    from harness.system import LegalLoss as LegalLoss
    from harness.system import NodeSpec as NodeSpec
    from harness.system import System as System
    from harness.watch import Watch as Watch
    from harness.workload import Workload as Workload
    from nemesis.impair import ImpairLinks as ImpairLinks
    from nemesis.impair import ImpairLinksOf as ImpairLinksOf
    from nemesis.impair import ImpairNodes as ImpairNodes
    from nemesis.links import Between as Between
    from nemesis.links import OneDirection as OneDirection
    from nemesis.membership import shrink as shrink
    from nemesis.membership import wipe as wipe
    from nemesis.periodic import every as every
    from nemesis.shape import Apart as Apart
    from nemesis.shape import Bridge as Bridge
    from nemesis.shape import ClockShape as ClockShape
    from nemesis.shape import CutLink as CutLink
    from nemesis.shape import CutOneDirection as CutOneDirection
    from nemesis.shape import Isolate as Isolate
    from nemesis.shape import OneWay as OneWay
    from nemesis.shape import RandomHalves as RandomHalves
    from nemesis.shape import kill as kill
    from nemesis.shape import pause as pause
    from nemesis.shape import power_off as power_off
    from nemesis.shape import restart as restart
    from nemesis.target import ALL as ALL
    from nemesis.target import Group as Group
    from nemesis.target import Majority as Majority
    from nemesis.target import Minority as Minority
    from nemesis.target import Nodes as Nodes
    from nemesis.target import One as One
    from nemesis.target import Role as Role
    from nemesis.trigger import Trigger as Trigger
    from nemesis.trigger import after as after
    from nemesis.trigger import when as when
    from stormproof.scenarios import ACTIVE_CONTROLLER as ACTIVE_CONTROLLER
    from stormproof.scenarios import IT as IT
    from stormproof.scenarios import PRIMARY as PRIMARY
    from stormproof.scenarios import Chosen as Chosen
    from stormproof.scenarios import chosen as chosen
    from stormproof.scenarios import log as log
    from stormproof.scenarios import register as register
    from stormproof.scenarios import rocketmq as rocketmq
    from stormproof.scenarios import run as run
    from stormproof.scenarios import storm as storm
    from stormproof.session.outcome import Outcome as Outcome
    from system_under_test.runtime.host import ConnectFailed as ConnectFailed
    from system_under_test.runtime.host import Connection as Connection
    from system_under_test.runtime.host import ConnectionClosed as ConnectionClosed
    from system_under_test.runtime.host import Host as Host

_NAMES = {
    "checkers.api.anomaly": ("Anomaly",),
    "checkers.api.evidence": ("Evidence", "any_ok"),
    "checkers.api.findings": ("FINDINGS", "Example", "Findings", "gathered_findings", "judge"),
    "checkers.linearizable.model": ("ANYTHING", "Call", "Model", "always", "reading"),
    "checkers.api.per_key": ("PairedOperation", "finding", "per_key"),
    "checkers.api.plan": ("CheckRequest", "Checker", "Dataset", "Engine"),
    "checkers.completions": ("CompletionEchoes", "members"),
    "checkers.api.verdict": ("AnomalySummary", "CheckerResult", "Verdict"),
    "harness.abilities": ("Elastic",),
    "harness.bounds": ("Bounds",),
    "harness.client": ("Client",),
    "harness.errors": (
        "CLIENT_CRASHED",
        "CLIENT_TIMEOUT",
        "CONNECTION_LOST",
        "CONNECT_FAILED",
        "NOT_FOUND",
        "OUTCOME_UNKNOWN",
        "PRECONDITION_FAILED",
        "SERVICE_NOT_AVAILABLE",
        "ErrorCode",
        "HarnessError",
        "OperationError",
        "UsageError",
    ),
    "harness.generator": ("Generator", "drawn", "indexed", "invoke"),
    "harness.invariants": ("Breaches", "Invariants"),
    "harness.membership": ("Start",),
    "harness.operation": ("Operation",),
    "harness.program": (
        "Command",
        "DebianPackages",
        "Dockerfile",
        "JavaRelease",
        "Listening",
        "MavenArtifacts",
        "NamedImage",
        "PythonProgram",
        "Succeeding",
    ),
    "harness.record.excuse": ("Excuse",),
    "harness.record.fault_log": ("FaultWindow",),
    "harness.record.meaning": ("Meaning",),
    "harness.record.node_reports": ("NodeReports",),
    "harness.record.scenario": ("Scenario",),
    "harness.seed": ("Seed",),
    "stormproof.session.outcome": ("Outcome",),
    "harness.system": ("Declaration", "LegalLoss", "NodeSpec", "System"),
    "harness.watch": ("Watch",),
    "harness.workload": ("Workload",),
    "nemesis.periodic": ("every",),
    "nemesis.impair": ("ImpairLinks", "ImpairLinksOf", "ImpairNodes"),
    "nemesis.links": ("Between", "OneDirection"),
    "nemesis.membership": ("shrink", "wipe"),
    "nemesis.shape": (
        "Apart",
        "Bridge",
        "ClockShape",
        "CutLink",
        "CutOneDirection",
        "Isolate",
        "OneWay",
        "RandomHalves",
        "kill",
        "pause",
        "power_off",
        "restart",
    ),
    "nemesis.target": ("ALL", "Group", "Majority", "Minority", "Nodes", "One", "Role"),
    "nemesis.trigger": ("Trigger", "after", "when"),
    "stormproof.scenarios": (
        "ACTIVE_CONTROLLER",
        "IT",
        "PRIMARY",
        "Chosen",
        "chosen",
        "log",
        "register",
        "rocketmq",
        "run",
        "storm",
    ),
    "system_under_test.runtime.host": ("ConnectFailed", "Connection", "ConnectionClosed", "Host"),
}
"""Module -> the names that it gives to users; the imports above say the same to type checkers."""
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'stormproof' has no attribute {name!r}")
    require_own_packages()
    value = getattr(importlib.import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
