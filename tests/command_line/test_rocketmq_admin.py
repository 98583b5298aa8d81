"""`rocketmq-admin` against nodes that run as processes: what it shows, changes, and says when it fails."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import signal
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.remoting.properties import encode_properties
from tests.pages import ALL, commands_of
from workloads.systems.rocketmq.admin.main import group, run

pytestmark = pytest.mark.xdist_group("rocketmq-admin")
PROGRAM = (sys.executable, "-m", "stormproof.rocketmq_admin")
IP = f"127.{51 + os.getpid() // 250 % 200}.{1 + os.getpid() % 250}"
NAMES = ("c1", "c2", "b1", "b2")
AT = {name: f"{IP}.{number}" for number, name in enumerate(NAMES, 1)}
CONTROLLER = f"{AT['c1']}:9878"
NAME_SERVER = f"{AT['c1']}:9876"
NOBODY = f"{AT['c1']}:9"


@dataclass
class Answer:
    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Of --json."""
        return list(json.loads(self.out)["rows"])


def admin(*words: str) -> Answer:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(words)
    return Answer(code, out.getvalue(), err.getvalue())


def done(*words: str) -> list[dict[str, Any]]:
    """The rows of a command that has to succeed."""
    answer = admin(*words, "--json")
    assert (answer.code, answer.err) == (0, ""), answer
    return answer.rows


def until(holds: Callable[[], bool], within_s: float = 30.0) -> None:
    end_s = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < end_s, f"not so within {within_s} s"
        time.sleep(0.1)


class Nodes:
    def __init__(self, root: Path) -> None:
        self._root = root
        self._processes: list[subprocess.Popen[bytes]] = []

    def boot(self, name: str, kind: str, config: Mapping[str, Any]) -> None:
        file = self._root / f"{name}.json"
        file.write_text(json.dumps({"name": name, "data": str(self._root / name), "bind": AT[name], "config": config}))
        program = [sys.executable, "-m", "system_under_test.runtime.real", f"system_under_test.rocketmq.node:{kind}"]
        self._processes.append(subprocess.Popen([*program, str(file)], stdout=subprocess.DEVNULL))

    def end(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait(timeout=20)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """A NameServer with a controller in c1, the brokers b1 and b2 in sync, and c2 that waits to be added."""
    running = Nodes(tmp_path_factory.mktemp("nodes"))
    quick = {"raftMinElectionTimeout": 300, "raftMaxElectionTimeout": 600, "scanInactiveMasterInterval": 200}
    peer = f"c1-{AT['c1']}:9879"
    running.boot(
        "c1",
        "nameserver",
        {
            "enableControllerInNamesrv": True,
            "controllerPort": 9878,
            "controllerDLegerPeers": peer,
            "controllerDLegerSelfId": "c1",
            "brokerHeartbeatTimeout": 2000,
            **quick,
        },
    )
    running.boot(
        "c2",
        "controller",
        {
            "controllerDLegerPeers": f"{peer};c2-{AT['c2']}:9879",
            "controllerDLegerSelfId": "c2",
            "controllerJoinsGroup": True,
            "controllerPort": 9878,
            **quick,
        },
    )
    for name in ("b1", "b2"):
        running.boot(
            name,
            "broker",
            {
                "namesrvAddr": NAME_SERVER,
                "enableControllerMode": True,
                "controllerAddr": CONTROLLER,
                "brokerAddr": f"{AT[name]}:10911",
                "topics": {"T": 2},
                "mappedFileSizeCommitLog": 1 << 20,
                "checkSyncStateSetPeriod": 200,
                "syncBrokerMetadataPeriod": 200,
                "brokerHeartbeatInterval": 100,
            },
        )
    try:
        until(lambda: [one["inSync"] for one in sync_state_set()] == [True, True])
        until(lambda: len(cluster()) == 2 and {one["role"] for one in cluster()} == {"master", "slave"})
        yield running
    finally:
        running.end()


def sync_state_set() -> list[dict[str, Any]]:
    return admin("getSyncStateSet", "-a", CONTROLLER, "-b", "broker-a", "--json").rows


def cluster() -> list[dict[str, Any]]:
    return admin("clusterList", "-n", NAME_SERVER, "--json").rows


def master() -> str:
    return next(one["brokerAddress"] for one in cluster() if one["role"] == "master")


def test_the_sync_state_set_is_shown_as_a_table_and_as_json(nodes: Nodes) -> None:
    rows = done("getSyncStateSet", "-a", CONTROLLER, "-c", "DefaultCluster", "-n", NAME_SERVER)
    assert [(row["brokerId"], row["inSync"], row["alive"]) for row in rows] == [(1, True, True), (2, True, True)]
    assert rows[0]["masterAddress"] == master()
    text = admin("getSyncStateSet", "-a", CONTROLLER, "-b", "broker-a").out.splitlines()
    assert text[0].split() == list(rows[0])
    assert [line.split() for line in text[1:]] == [
        [
            {True: "true", False: "false"}.get(value, str(value)) if isinstance(value, bool) else str(value)
            for value in row.values()
        ]
        for row in rows
    ]
    column = text[0].index("brokerAddress")
    assert all(line[column:].startswith(row["brokerAddress"]) for line, row in zip(text[1:], rows, strict=True))


def test_what_the_controllers_do_not_know_is_named_beside_what_they_do(nodes: Nodes) -> None:
    answer = admin("getSyncStateSet", "-a", CONTROLLER, "-b", "broker-a", "-b", "broker-z", "--json")
    assert answer.code == 1
    assert len(answer.rows) == 2
    assert answer.err == "rocketmq-admin: not-found: the controllers know no broker group 'broker-z'\n"
    answer = admin("getSyncStateSet", "-a", CONTROLLER, "-c", "elsewhere", "-n", NAME_SERVER)
    assert answer.code == 1
    assert "'elsewhere'" in answer.err
    assert "broker-a of DefaultCluster" in answer.err


def test_epochs_and_states_of_brokers_are_shown(nodes: Nodes) -> None:
    epochs = done("getBrokerEpoch", "-b", "broker-a", "-n", NAME_SERVER)
    assert {row["brokerAddress"] for row in epochs} == {f"{AT[name]}:10911" for name in ("b1", "b2")}
    of_master = [row for row in epochs if row["brokerAddress"] == master()]
    assert (of_master[0]["epoch"], of_master[0]["startOffset"]) == (1, 0)
    status = {row["key"]: row["value"] for row in done("brokerStatus", "-b", master())}
    assert (status["role"], status["brokerRoleId"], status["masterEpoch"]) == ("master", "0", "1")
    assert len(done("brokerStatus", "-c", "DefaultCluster", "-n", NAME_SERVER)) == 2 * len(status)


def test_topics_come_and_go(nodes: Nodes) -> None:
    made = done("updateTopic", "-t", "letters", "-c", "DefaultCluster", "-r", "4", "-w", "3", "-n", NAME_SERVER)
    assert made == [{"address": master(), "result": "updated"}]
    until(lambda: "letters" in [row["topic"] for row in done("topicList", "-n", NAME_SERVER)])
    (route,) = done("topicRoute", "-t", "letters", "-n", NAME_SERVER)
    assert (route["readQueueNums"], route["writeQueueNums"], route["perm"]) == (4, 3, 6)
    assert route["brokerAddresses"][0] == f"0-{master()}"
    status = done("topicStatus", "-t", "letters", "-n", NAME_SERVER)
    assert [(row["queueId"], row["minOffset"], row["maxOffset"]) for row in status] == [(n, 0, 0) for n in range(4)]
    listed = {row["topic"]: row["clusters"] for row in done("topicList", "-c", "-n", NAME_SERVER)}
    assert listed["letters"] == ["DefaultCluster"]
    deleted = done("deleteTopic", "-t", "letters", "-c", "DefaultCluster", "-n", NAME_SERVER)
    assert [row["result"] for row in deleted] == ["deleted", "forgotten"]
    gone = admin("topicRoute", "-t", "letters", "-n", NAME_SERVER)
    assert (gone.code, gone.out) == (1, "")
    assert f"{NAME_SERVER}: refused, TOPIC_NOT_EXIST" in gone.err


def test_groups_of_consumers_are_made_and_deleted_by_masters_alone(nodes: Nodes) -> None:
    assert done("updateSubGroup", "-g", "readers", "-b", master(), "-s", "false") == [
        {"address": master(), "result": "updated"}
    ]
    slave = next(one["brokerAddress"] for one in cluster() if one["role"] == "slave")
    refused = admin("updateSubGroup", "-g", "readers", "-b", slave)
    assert refused.code == 1
    assert refused.err.startswith(f"rocketmq-admin: {slave}: refused, NOT_MASTER")
    assert refused.err.endswith("nothing was changed there\n")
    assert done("deleteSubGroup", "-g", "readers", "-c", "DefaultCluster", "-r", "true", "-n", NAME_SERVER)


def test_settings_of_controllers_are_shown_and_changed(nodes: Nodes) -> None:
    def setting(key: str) -> str:
        rows = done("getControllerConfig", "-a", CONTROLLER)
        return next(row["value"] for row in rows if row["key"] == key)

    assert setting("notifyBrokerRoleChanged") == "true"
    done("updateControllerConfig", "-a", CONTROLLER, "-k", "notifyBrokerRoleChanged", "-v", "false")
    assert setting("notifyBrokerRoleChanged") == "false"
    done("updateControllerConfig", "-a", CONTROLLER, "-k", "notifyBrokerRoleChanged", "-v", "true")
    for key, value, why in (
        ("notifyBrokerRoleChange", "true", "did you mean notifyBrokerRoleChanged?"),
        ("notifyBrokerRoleChanged", "perhaps", "expected true or false, got 'perhaps'"),
        ("controllerStorePath", "elsewhere", "NO_PERMISSION"),
    ):
        refused = admin("updateControllerConfig", "-a", CONTROLLER, "-k", key, "-v", value)
        assert refused.code == 1
        assert why in refused.err


def test_one_of_two_nodes_that_is_down_hides_nothing_of_the_other(nodes: Nodes) -> None:
    answer = admin("getControllerMetaData", "-a", f"{NOBODY};{CONTROLLER}", "--json")
    assert answer.code == 1
    (row,) = answer.rows
    assert (row["controllerAddress"], row["isLeader"], row["controllerLeaderId"]) == (CONTROLLER, True, "c1")
    assert [error["node"] for error in json.loads(answer.out)["errors"]] == [NOBODY]
    assert NOBODY in answer.err
    assert "Traceback" not in answer.err


def test_a_master_is_designated_and_a_stranger_is_not_cleaned(nodes: Nodes) -> None:
    heir = 3 - sync_state_set()[0]["masterBrokerId"]
    (row,) = done("electMaster", "-a", CONTROLLER, "-b", str(heir), "-bn", "broker-a", "-c", "DefaultCluster")
    assert (row["masterBrokerId"], row["masterEpoch"], row["syncStateSet"]) == (heir, 2, [heir])
    refused = admin("electMaster", "-a", CONTROLLER, "-b", str(heir), "-bn", "broker-a", "-c", "DefaultCluster")
    assert refused.code == 1
    assert "CONTROLLER_MASTER_STILL_EXIST" in refused.err
    clean = ("cleanBrokerMetadata", "-a", CONTROLLER, "-bn", "broker-a")
    for words, why in (
        (("-b", "9", "-c", "DefaultCluster"), "broker 9 is unknown"),
        (("-b", "1", "-c", "DefaultCluster"), "broker 1 lives"),
        (("-b", "1", "-c", "elsewhere"), "belongs to cluster 'DefaultCluster'"),
    ):
        refused = admin(*clean, *words)
        assert refused.code == 1
        assert why in refused.err
    until(lambda: [one["inSync"] for one in sync_state_set()] == [True, True])


def test_rounds_go_on_until_they_are_interrupted(nodes: Nodes) -> None:
    words = ("clusterList", "-n", NAME_SERVER, "-i", "0.1", "--json")
    process = subprocess.Popen([*PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    rounds = [json.loads(process.stdout.readline())["rows"] for _ in range(3)]
    assert [len(rows) for rows in rounds] == [2, 2, 2]
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (0, "")


def test_a_reader_that_goes_away_ends_the_command(nodes: Nodes) -> None:
    words = ("clusterList", "-n", NAME_SERVER, "-i", "0.05")
    process = subprocess.Popen([*PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=20) == 255
    assert re.fullmatch(r"rocketmq-admin: cannot go on: .*Broken pipe\n", process.stderr.read())
    process.stderr.close()


def test_a_controller_joins_takes_over_and_the_first_one_leaves(nodes: Nodes) -> None:
    both = f"{CONTROLLER};{AT['c2']}:9878"
    early = admin("transferLeadership", "-a", both, "-d", "c2")
    assert early.code == 1
    assert "CONTROLLER_UNFIT_CHANGE" in early.err
    (row,) = done("addController", "-a", CONTROLLER, "-d", "c2", "-r", f"{AT['c2']}:9879")
    assert (row["result"], row["learners"]) == ("added", [])
    assert [peer.partition("-")[0] for peer in row["peers"]] == ["c1", "c2"]
    done("transferLeadership", "-a", CONTROLLER, "-d", "c2")
    until(lambda: [one["controllerLeaderId"] for one in done("getControllerMetaData", "-a", both)] == ["c2", "c2"])
    # Who leads is active a little later, once what was decided before is applied.
    until(lambda: admin("removeController", "-a", both, "-d", "c1").code == 0)
    until(lambda: [one["alive"] for one in done("getSyncStateSet", "-a", both, "-b", "broker-a")] == [True, True])
    (last,) = [row for row in done("getControllerMetaData", "-a", f"{AT['c2']}:9878")]
    assert last["peers"] == [f"c2-{AT['c2']}:9879"]
    refused = admin("removeController", "-a", both, "-d", "c2")
    assert refused.code == 1
    assert "c2 is the only one that votes" in refused.err


WRONG = (
    ((), "electMaster"),
    (("electMasters",), "did you mean electMaster"),
    (("getSyncStateSet",), "-a"),
    (("getSyncStateSet", "-a", CONTROLLER), "expected exactly one of -b and -c"),
    (("getSyncStateSet", "-a", CONTROLLER, "-b", "x", "-c", "y"), "expected exactly one of -b and -c"),
    (("getSyncStateSet", "-a", CONTROLLER, "-c", "y"), "Missing option -n"),
    (("getSyncStateSet", "-a", CONTROLLER, "-b", " "), "expected text"),
    (("getSyncStateSet", "-a", "nowhere", "-b", "x"), "expected host:port"),
    (("getSyncStateSet", "-a", "h:0", "-b", "x"), "expected host:port"),
    (("getSyncStateSet", "-a", ";", "-b", "x"), "expected host:port"),
    (("getSyncStateSet", "-a", "h:1;h:99999", "-b", "x"), "'h:99999'"),
    (("clusterList", "-n", "h:1", "-i", "0"), "expected seconds"),
    (("clusterList", "-n", "h:1", "-i", "nan"), "expected seconds"),
    (("clusterList", "-n", "h:1", "--timeout", "-1"), "expected seconds"),
    (("electMaster", "-a", "h:1", "-b", "0", "-bn", "x", "-c", "y"), "0"),
    (("cleanBrokerMetadata", "-a", "h:1", "-bn", "x"), "Missing option -c"),
    (("cleanBrokerMetadata", "-a", "h:1", "-bn", "x", "-b", "1;b"), "ids with semicolons"),
    (("updateTopic", "-t", "no such name!", "-b", "h:1"), "letters, digits"),
    (("updateTopic", "-t", "T", "-b", "h:1", "-r", "0"), "0"),
    (("updateSubGroup", "-g", "ü", "-b", "h:1"), "letters, digits"),
    (("addController", "-a", "h:1", "-d", "c2", "-r", "h"), "expected host:port"),
    (("clusterList", "-n", "h:1", "--jsn"), "--json"),
)


@pytest.mark.parametrize("words", [("--help",), ("electMaster", "-h"), ("topicList", "-n", NOBODY, "--json")])
def test_a_place_that_cannot_be_written_is_one_line_and_255(words: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        ended = subprocess.run([*PROGRAM, *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert ended.returncode == 255
    assert re.fullmatch(r"rocketmq-admin: cannot go on: .*No space left on device\n", ended.stderr)


def test_a_round_that_fails_is_named_and_the_next_one_comes() -> None:
    words = ("clusterList", "-n", NOBODY, "-i", "0.05")
    process = subprocess.Popen([*PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert all(NOBODY in process.stderr.readline() for _ in range(3))
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=20)
    assert (process.returncode, out) == (0, "")


@pytest.mark.parametrize(
    ("words", "why"), WRONG, ids=lambda value: " ".join(value).replace(IP, "ip") if isinstance(value, tuple) else ""
)
def test_wrong_usage_is_one_line_and_254(words: tuple[str, ...], why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    answer = admin(*words)
    if words == ():
        assert (answer.code, answer.err) == (0, "")
        assert why in answer.out, "without a command it shows them"
        return
    assert (answer.code, answer.out) == (254, "")
    assert answer.err.count("\n") == 1
    assert why in answer.err


def test_name_servers_may_be_given_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAMESRV_ADDR", NOBODY)
    answer = admin("clusterList")
    assert answer.code == 1
    assert NOBODY in answer.err


def words_for(name: str, address: str) -> list[str]:
    """What this command needs, with everybody at one address."""
    own = {
        "getSyncStateSet": ["-b", "x"],
        "getBrokerEpoch": ["-b", "broker-a"],
        "brokerStatus": ["-b", address],
        "electMaster": ["-b", "1", "-bn", "x", "-c", "y"],
        "cleanBrokerMetadata": ["-bn", "x", "-c", "y"],
        "updateControllerConfig": ["-k", "x", "-v", "y"],
        "addController": ["-d", "c9", "-r", "h:1"],
        "removeController": ["-d", "c9"],
        "transferLeadership": ["-d", "c9"],
        "updateTopic": ["-t", "T", "-b", address],
        "deleteTopic": ["-t", "T", "-c", "y"],
        "updateStaticTopic": ["-t", "T", "-qn", "4", "-c", "y"],
        "remappingStaticTopic": ["-t", "T", "-c", "y"],
        "balanceStaticTopics": ["-l", "T", "0", "9000", "-c", "y"],
        "topicRoute": ["-t", "T"],
        "topicStatus": ["-t", "T"],
        "updateSubGroup": ["-g", "G", "-b", address],
        "deleteSubGroup": ["-g", "G", "-b", address],
    }
    options = [option for param in group.commands[name].params for option in param.opts]
    everybody = [
        word for option in ("--controllerAddress", "--namesrvAddr") if option in options for word in (option, address)
    ]
    return [name, *everybody, *own.get(name, [])]


@pytest.mark.parametrize("name", list(group.commands))
def test_nobody_who_can_be_reached_is_one_line_and_no_traceback(name: str) -> None:
    answer = admin(*words_for(name, NOBODY))
    assert (answer.code, answer.out) == (1, ""), answer
    assert answer.err.count("\n") == 1
    assert answer.err.startswith("rocketmq-admin: ")
    assert NOBODY in answer.err


def test_every_command_in_the_guide_is_understood() -> None:
    calls = commands_of("rocketmq-admin")
    assert len(calls) >= 8
    for line in calls:
        _, name, *words = shlex.split(line)
        group.commands[name].make_context(name, words).close()
    named = {*re.findall(r"`(\w+)`", ALL), *(line.split()[1] for line in calls)}
    assert {*group.commands} <= named, "a command that nobody is told of"


HOSTILE = "\x1b[2J\nVALID\u202e"
LIES: dict[str, Callable[[RemotingCommand], bytes]] = {
    "no frame": lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "half a frame": lambda _: b"\0\0\0\x20half",
    "silence": lambda _: b"",
    "no body": lambda asked: answering(asked, {}, b""),
    "bytes": lambda asked: answering(asked, {"isLeader": "true", "offset": "x"}, bytes(range(256))),
    "a list": lambda asked: answering(asked, {"isLeader": "true"}, b"[1]"),
    "numbers": lambda asked: answering(asked, {"isLeader": "true", "term": "9" * 999}, b'{"table":1,"topicList":2}'),
    "nested": lambda asked: answering(asked, {"isLeader": "true"}, b"[" * 100_000),
    "a refusal": lambda asked: answering(asked, {}, b"", ResponseCode.SYSTEM_BUSY, HOSTILE),
    "an unknown code": lambda asked: answering(asked, {}, b"", 12_345, HOSTILE),
    "escapes": lambda asked: answering(
        asked,
        {"isLeader": "true", "peers": HOSTILE, "group": HOSTILE, "controllerLeaderId": HOSTILE, "offset": "1"},
        hostile_body(asked),
    ),
}


def hostile_body(asked: RemotingCommand) -> bytes:
    if asked.code == RequestCode.GET_CONTROLLER_CONFIG:
        return encode_properties({HOSTILE: HOSTILE})
    broker = {"cluster": HOSTILE, "brokerName": HOSTILE, "brokerAddrs": {"0": HOSTILE}}
    row = {"brokerId": 1, "brokerAddress": HOSTILE, "alive": HOSTILE}
    group_state = {"masterEpoch": 1, "syncStateSetEpoch": 1, "masterAddress": HOSTILE}
    return json.dumps(
        {
            "table": {HOSTILE: HOSTILE},
            "topicList": [HOSTILE],
            "brokerAddrTable": {"broker-a": broker, HOSTILE: broker},
            "brokerDatas": [broker],
            "queueDatas": [{"brokerName": HOSTILE, "readQueueNums": 2, "writeQueueNums": 1}],
            "replicasInfoTable": {HOSTILE: {**group_state, "inSyncReplicas": [row], "notInSyncReplicas": [row]}},
            "syncStateSet": [1],
            "syncStateSetEpoch": 1,
        }
    ).encode()


def answering(
    asked: RemotingCommand, fields: Mapping[str, str], body: bytes, code: int = 0, remark: str | None = None
) -> bytes:
    answer = RemotingCommand.response(code, fields, body, remark)
    answer.opaque = asked.opaque
    return answer.encode()


@pytest.fixture(scope="module")
def liar() -> Iterator[tuple[str, list[str]]]:
    """An address, and the name of the lie that it tells."""
    told = ["silence"]

    class Liar(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while length := self.rfile.read(4):
                asked = RemotingCommand.decode(self.rfile.read(int.from_bytes(length, "big")))
                self.wfile.write(LIES[told[0]](asked))

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Liar) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}", told
        server.shutdown()


CHANGING = re.compile("update|delete|elect|clean|add|remapping|remove|transfer")


@pytest.mark.parametrize("lie", LIES)
def test_whatever_is_answered_ends_in_an_exit_code_and_acts_on_no_terminal(
    liar: tuple[str, list[str]], lie: str
) -> None:
    address, told = liar
    told[0] = lie
    is_waited_for = lie in ("silence", "half a frame")
    patience = "0.05" if is_waited_for else "5"
    for name in [*group.commands][:: 4 if is_waited_for else 1]:
        text, data = (admin(*words_for(name, address), "--timeout", patience, *form) for form in ([], ["--json"]))
        for answer in (text, data):
            assert answer.code in ((0, 1, 2) if CHANGING.match(name) else (0, 1)), (name, answer)
            assert "Traceback" not in answer.err
            assert (answer.out + answer.err).replace("\n", "").isprintable(), (name, answer)
        errors = json.loads(data.out)["errors"]
        assert len(data.err.splitlines()) == len(text.err.splitlines()) == len(errors)
        assert (data.code == 0) is (errors == [])
        if data.code == 0:
            assert len(text.out.splitlines()) == 1 + len(data.rows), "a row is a line"
    assert lie != "escapes" or admin("getControllerConfig", "-a", address).out.count("\\x1b[2J") == 2


def test_a_change_without_an_answer_is_in_doubt_and_a_question_is_not(liar: tuple[str, list[str]]) -> None:
    address, told = liar
    told[0] = "silence"
    changed = admin("updateTopic", "-t", "T", "-b", address, "--timeout", "0.2")
    assert changed.code == 2
    assert changed.err.endswith("it may have been done, or may yet be\n")
    assert admin("topicList", "-n", address, "--timeout", "0.2").code == 1


def test_an_interrupted_change_is_in_doubt(liar: tuple[str, list[str]]) -> None:
    address, told = liar
    told[0] = "silence"
    words = ("updateTopic", "-t", "T", "-b", address, "--timeout", "60")
    process = subprocess.Popen([*PROGRAM, *words], stderr=subprocess.PIPE, text=True)
    until(lambda: _is_connected_to(process.pid, address))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 255
    assert err == "rocketmq-admin: interrupted; what was asked for may have been done, or may yet be\n"


def _is_connected_to(process: int, address: str) -> bool:
    port = f"{int(address.rpartition(':')[2]):04X}"
    sockets = {os.readlink(file) for file in Path(f"/proc/{process}/fd").iterdir() if file.is_symlink()}
    for line in Path(f"/proc/{process}/net/tcp").read_text().splitlines()[1:]:
        _, _, remote, state, *others = line.split()
        if remote.endswith(f":{port}") and state == "01" and f"socket:[{others[5]}]" in sockets:
            return True
    return False
